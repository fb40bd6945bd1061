// The replay under the settings in force, which sweep and fit compare with.
#ifndef MEMREPLAY_CLI_CURRENT_REPLAY_H_
#define MEMREPLAY_CLI_CURRENT_REPLAY_H_

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

struct CurrentReplay {
  proto::DeviceReport report;  // without segments, statistics, rules
  MemoryState start;           // of a warm recording
};

// A recording as it happened, held against what it says; a program on its device.
absl::StatusOr<CurrentReplay> ReplayCurrent(const Schedule& schedule, size_t device_index,
                                            const ReplaySettings& settings);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_CURRENT_REPLAY_H_
