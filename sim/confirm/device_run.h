// Runs a schedule once on one device and observes everything that a comparison with another device
// needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/device/watched_device.h"
#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/observe/decisions.h"
#include "sim/observe/fragmentation.h"
#include "sim/observe/moments.h"
#include "sim/observe/overlap_checker.h"
#include "sim/observe/timeline.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/replay.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// The input of a run, which is the same for every device.
struct RunPlan {
  const Schedule* schedule = nullptr;        // not owned
  const ReplaySettings* settings = nullptr;  // not owned
  RunBackend backend = RunBackend::kNative;
  StartPolicy start = StartPolicy::kRecorded;
  MemoryState start_segments;  // those of the recording for kRecorded
  std::string start_note;      // why the start is not the requested one
};

// What observes a run, and what replaces its allocator.
struct RunWatch {
  // The allocator of kAsync; null is the simulated one.
  std::unique_ptr<Allocator> async;
  Intervention* intervention = nullptr;  // not owned; may stop the run
  Observer* extra = nullptr;             // sees the run from its start; may be null; not owned
  // Returns free memory if that differs from the device's own count; see WatchedDevice.
  std::function<Bytes()> free_memory;
};

// The result of a run on a device.
struct DeviceRun {
  RunResult run;
  uint64_t events = 0;
  Usage peak;
  Moments moments;         // `requests` is fewer than the schedule's if it was stopped
  MemoryStats statistics;  // at the end
  std::vector<MemoryCall> calls;
  std::vector<Decision> decisions;
  std::vector<TimelineBucket> timeline;
  std::optional<Fragmentation> fragmentation;
  std::vector<OomMoment> ooms;
  // Bytes of the device in excess of what was in use before the run.
  int64_t peak_used = 0;
  uint32_t peak_used_request = kBeforeFirstRequest;
  int64_t used_at_peak_reserved = 0;  // after the request that first reserved most was served
  int64_t used_at_end = 0;            // after everything was released: 0 unless others use the GPU
  Bytes total;                        // of the device
  Bytes free_before;
  std::optional<OverlapChecker::Violation> violation;  // two blocks share memory
};

// Decides how a warm recording can begin on a simulated device with that memory: sets
// RunPlan::start, start_segments and start_note.
void PlanStart(StartPolicy wanted, Bytes total, Bytes free, RunPlan* plan);

// Runs the plan and releases everything on `device`, whether or not the run was stopped. O(requests
// + events). Error: the memory fraction is outside [0, 1], or the start does not fit.
absl::StatusOr<DeviceRun> RunOnDevice(const RunPlan& plan, Device& device, RunWatch watch = {});

// Does the same on a simulated device of `total` bytes of which `free` are free. With `placed`,
// regions lie where those calls' regions lay (relocated_device.h).
absl::StatusOr<DeviceRun> RunSimulated(const RunPlan& plan, Bytes total, Bytes free,
                                       const std::vector<MemoryCall>* placed = nullptr);

}  // namespace memreplay
