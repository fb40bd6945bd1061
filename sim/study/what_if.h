// Replays a recording or a written schedule on a simulated device under chosen settings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sim/device/simulated_device.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/model/rule.h"
#include "sim/observe/fragmentation.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/replay.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// Figures of a what-if that a row of a sweep has, too.
struct WhatIfFigures {
  DeviceCalls calls;                  // since the first request
  double call_nanoseconds = 0;        // likewise, according to WhatIfOptions::costs
  std::optional<uint64_t> first_oom;  // the request that first ran out of memory
  // The run is the same on every larger device below this, or if absent on every larger one. This
  // holds if no memory fraction and no garbage collection makes the run depend on the size itself.
  std::optional<Bytes> same_until;
  // Whether large_segment_size may have affected the run: there is a segment of that size, or one
  // was refused, or segments are expandable. Otherwise no request that it concerns reached the
  // device, and the run is the same under every other.
  bool needs_large_segment_size = true;
  StartPolicy start = StartPolicy::kRecorded;  // the policy that was used
  std::string start_note;                      // why it is not the requested one
};

// The result of a what-if.
struct WhatIfResult : WhatIfFigures {
  RunResult run;
  uint64_t events = 0;  // including requests that PyTorch does not record
  Usage peak;
  std::array<uint64_t, kUsageKinds> peak_event = {};
  Moments moments;
  MemoryStats statistics;                      // at the end
  MemoryState segments;                        // at the end
  RuleCounts rules = {};                       // how often each rule of the caching allocator fired
  std::optional<Fragmentation> fragmentation;  // at the peak of reserved memory, if requested
};

// How a what-if starts, and what it measures.
struct WhatIfOptions {
  StartPolicy start = StartPolicy::kRecorded;
  // Whether to sample fragmentation at the peak of reserved memory.
  bool fragmentation = false;
  bool keep_segments = false;  // in that sample
  // The segments of a warm recording's start, if they are already known (from RebuildStartState()
  // under the recorded settings); else they are rebuilt.
  const MemoryState* recorded_start = nullptr;
  // The costs of driver calls; not owned. Null if unknown.
  const CallCosts* costs = nullptr;
  // Whether work on other streams is complete as soon as the allocator polls, not when the
  // recording says.
  bool complete_at_once = false;
  RunOptions run;
};

// Replays a schedule on a simulated device. Segments of a recorded start keep their order but get
// the simulated device's own addresses. A start that cannot be restored like this (expandable
// segments; more than the device holds) is allocated anew instead. `extra` (may be null) observes
// the run. Error: the memory fraction of `settings` is outside [0, 1].
absl::StatusOr<WhatIfResult> ReplayWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                          Observer* extra = nullptr,
                                          const WhatIfOptions& options = {});

}  // namespace memreplay
