// A trace or a program replayed on a simulated device under chosen settings.
#ifndef MEMREPLAY_SIM_STUDY_WHAT_IF_H_
#define MEMREPLAY_SIM_STUDY_WHAT_IF_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sim/device/call_costs.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/model/rule.h"
#include "sim/observe/fragmentation.h"
#include "sim/observe/moments.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/replay.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// What a what-if came to.
struct WhatIfResult {
  RunResult run;
  uint64_t events = 0;  // emitted, requests that PyTorch does not record included
  Usage peak;
  std::array<uint64_t, kUsageKinds> peak_event = {};
  DeviceCalls calls;                  // since the first request
  double call_nanoseconds = 0;        // likewise, by WhatIfOptions::costs
  std::optional<uint64_t> first_oom;  // the request that first ran out of memory
  // The run is the same on every larger device below this; absent: on every larger one. Holds
  // where no memory fraction and no garbage collection makes the run depend on the size itself.
  std::optional<Bytes> same_until;
  Moments moments;
  MemoryStats statistics;                      // at the end
  MemoryState segments;                        // at the end
  RuleCounts rules = {};                       // how often each rule of the caching allocator fired
  std::optional<Fragmentation> fragmentation;  // where reserved peaks, if requested
  StartPolicy start = StartPolicy::kRecorded;  // the one followed
  std::string start_note;                      // why not the requested one
};

// How a what-if starts, and what is noted of it.
struct WhatIfOptions {
  StartPolicy start = StartPolicy::kRecorded;
  // Sample fragmentation where reserved memory peaks.
  bool fragmentation = false;
  bool keep_segments = false;  // in that sample
  // The segments of a warm recording's start, if they are known already (of
  // RebuildStartState() under the recorded settings); else they are rebuilt.
  const MemoryState* recorded_start = nullptr;
  // What driver calls cost; not owned. Null: not known.
  const CallCosts* costs = nullptr;
  // Work on other streams is done as soon as the allocator asks, not when the recording says.
  bool complete_at_once = false;
  RunOptions run;
};

// Segments of a recorded start keep their order but not their addresses, which
// are the simulated device's own. A start that cannot be set up so (expandable
// segments; more than the device holds) is allocated anew instead. `recorded`
// are the settings that the recording was made under. `extra` (may be null)
// watches the run. Error: the memory fraction of `settings` is
// outside [0, 1].
absl::StatusOr<WhatIfResult> ReplayWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                          Observer* extra = nullptr,
                                          const WhatIfOptions& options = {});

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_STUDY_WHAT_IF_H_
