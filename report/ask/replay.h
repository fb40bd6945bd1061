// What a file does under some settings.
#ifndef MEMREPLAY_REPORT_ASK_REPLAY_H_
#define MEMREPLAY_REPORT_ASK_REPLAY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/model/observer.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/control.h"
#include "sim/whatif/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

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

// Reserved memory at its peak, had work on other streams been done as soon as the allocator asked.
// Nullopt: in the recording it was, or nothing differs. Error: ReplayWhatIf()'s.
absl::StatusOr<std::optional<Bytes>> PeakCompletedAtOnce(const Schedule& schedule,
                                                         const ReplaySettings& settings);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_REPLAY_H_
