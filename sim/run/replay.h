// One run: a schedule goes through an allocator on a device, and observers watch it. The repetition
// of a recording, a what-if and a run on a real device differ only in the values given here.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/device.h"
#include "sim/model/observer.h"
#include "sim/run/run.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

enum class RunBackend : uint8_t {
  kNative,  // PyTorch's caching allocator
  kDirect,  // no caching: each allocation is a segment of the device
  kAsync,   // the driver's stream-ordered pool
};

// The state before the first request of a warm recording.
enum class StartPolicy : uint8_t {
  kRecorded,  // the recorded segments and blocks, including cached ones
  kFresh,     // only what was live, allocated anew in address order
};

// What exists before the first request of a replay.
struct ReplayStart {
  StartPolicy policy = StartPolicy::kFresh;
  // The start of kRecorded, not owned; null if there is nothing.
  const MemoryState* segments = nullptr;
  // Whether the device already has the segments at their addresses. Otherwise memory for them is
  // requested in their order, and the device determines the addresses.
  bool is_held = false;
  const RestoreHints* hints = nullptr;  // not owned
};

// What to run. The settings are the initial ones; those in the schedule change them. Nothing is
// owned.
struct ReplayPlan {
  const Schedule* schedule = nullptr;
  const TorchProfile* profile = nullptr;
  const AllocatorConfig* config = nullptr;
  std::optional<double> fraction = std::nullopt;
  RunBackend backend = RunBackend::kNative;
  // Serves the requests of kAsync; null is a simulated pool.
  Allocator* async = nullptr;
  ReplayStart start = {};
  TieGuide* tie_guide = nullptr;
};

// The outcome of a replay.
struct ReplayResult {
  RunResult run;           // including what ran out of memory at the start
  MemoryStats statistics;  // at the end of the run
  MemoryState segments;
  RuleCounts rules = {};
};

// Replays a plan in O(requests + events). Observers receive the start, then requests and events,
// then the end, while everything is still held; the device must release what is held then. Errors:
// the memory fraction is outside [0, 1]; the device cannot hold the start state; a request of the
// start state raises an exception. If the observer's class is final, the run is compiled for it, as
// Run() is.
template <typename AnyObserver>
absl::StatusOr<ReplayResult> Replay(const ReplayPlan& plan, Device& device, AnyObserver& observer,
                                    const RunOptions& options = {});

// Implements Replay(): `run` is Run() of the plan's schedule with the same observer.
absl::StatusOr<ReplayResult> ReplayBy(
    absl::FunctionRef<RunResult(CachingAllocator&, const RunOptions&)> run, const ReplayPlan& plan,
    Device& device, Observer& observer, const RunOptions& options);

template <typename AnyObserver>
absl::StatusOr<ReplayResult> Replay(const ReplayPlan& plan, Device& device, AnyObserver& observer,
                                    const RunOptions& options) {
  const auto run = [&](CachingAllocator& allocator, const RunOptions& run_options) {
    return Run(*plan.schedule, allocator, observer, run_options);
  };
  return ReplayBy(run, plan, device, observer, options);
}

// Returns whether stream work completes only when the schedule says so. The completions of a
// recording are requests of its schedule; for a schedule that was written, the header decides.
bool CompletesExplicitly(const Schedule& schedule);

// Returns the same segments, in the same order, at the addresses where `device` puts them. Errors:
// Unimplemented if one of them is expandable; ResourceExhausted if there is no room, in which case
// the device must release what was allocated until then.
absl::StatusOr<MemoryState> RelocateSegments(const MemoryState& recorded, Device& device);

}  // namespace memreplay
