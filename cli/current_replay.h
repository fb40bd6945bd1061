// The replay under the settings in force, which sweep and fit compare with.
#ifndef MEMREPLAY_CLI_CURRENT_REPLAY_H_
#define MEMREPLAY_CLI_CURRENT_REPLAY_H_

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/control.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

struct CurrentReplay {
  proto::DeviceReport report;  // without segments, statistics, rules
  WhatIfBasis basis;           // what replays under other settings stand on
};

// A recording as it happened, held against what it says, and the control of what-ifs; a
// program on its device.
absl::StatusOr<CurrentReplay> ReplayCurrent(const Schedule& schedule, size_t device_index,
                                            const ReplaySettings& settings);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_CURRENT_REPLAY_H_
