// What a file does under some settings.
#ifndef MEMREPLAY_REPORT_ASK_REPLAY_H_
#define MEMREPLAY_REPORT_ASK_REPLAY_H_

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/model/observer.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/control.h"
#include "sim/whatif/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

struct ReplayAnswer {
  proto::DeviceReport report;
  MemoryState segments;  // at the end
};

// As it happened, or under `settings` on the recording's card, with the control of what-ifs and
// the peak with addresses in the other order. `watchers` may be null. Error: ReplayWhatIf()'s.
absl::StatusOr<ReplayAnswer> AskReplay(const Schedule& schedule, const ReplaySettings& settings,
                                       StartPolicy start, Observer* watchers);

// The replay under the settings in force, which sweep and fit compare with.
struct CurrentReplay {
  proto::DeviceReport report;  // without segments, statistics, rules
  WhatIfBasis basis;           // what replays under other settings stand on
};

// A recording as it happened, held against what it says, and the control of what-ifs; a
// program on its device.
absl::StatusOr<CurrentReplay> AskCurrent(const Schedule& schedule, const ReplaySettings& settings);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_REPLAY_H_
