// Checks whether the simulation is right about a device: the same schedule is predicted and
// measured, and the two are compared decision by decision.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sim/device/watched_device.h"
#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/observe/fragmentation.h"
#include "sim/observe/overlap_checker.h"
#include "sim/observe/timeline.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/replay.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// What an allocator decided, in a form in which runs on devices that place memory differently can
// be compared: an entry of PyTorch's trace with its segment and offset instead of an address. An
// oom has no place, and its free bytes are no decision.
struct Decision {
  Event event;
  uint32_t request = 0;  // position in Schedule::requests()
  Place place;
};

enum class DecisionScope : uint8_t {
  kAll,
  // Without segments and places, because the pools of two drivers differ.
  kRequests,
};

// Returns whether kind, size, extent, stream, pool and id agree, and with kAll the place.
bool SameDecision(const Decision& a, const Decision& b, DecisionScope scope);

// An observer that keeps the decisions of a run. O(log regions) per event.
class DecisionLog final : public Observer {
 public:
  // `device` is the one that the allocator uses; it must outlive this.
  explicit DecisionLog(const WatchedDevice& device) : device_(device) {}

  void OnRequest(size_t request) override { request_ = static_cast<uint32_t>(request); }
  void OnEvent(const Event& event) override;

  std::vector<Decision> Take() { return std::move(decisions_); }

 private:
  const WatchedDevice& device_;
  uint32_t request_ = 0;
  std::vector<Decision> decisions_;
};

// Where two runs diverge.
struct DecisionDifference {
  uint32_t request = 0;
  std::optional<Decision> predicted;  // absent: the other has one more
  std::optional<Decision> measured;
};

// How the decisions of two runs compare.
struct DecisionComparison {
  uint64_t compared = 0;  // the larger number of the two, added up over requests
  uint64_t equal = 0;
  std::optional<DecisionDifference> first;
  bool all_equal() const { return equal == compared; }
};

// Compares two runs request by request: one decision too many or too few does not affect the next
// request. O(decisions).
DecisionComparison CompareDecisions(absl::Span<const Decision> predicted,
                                    absl::Span<const Decision> measured, DecisionScope scope);

// Returns a description such as "alloc of 512 bytes on stream 0 in segment 3 at 1,024".
std::string DescribeDecision(const Decision& decision);

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
// regions lie where those calls' regions lay (RelocatedDevice).
absl::StatusOr<DeviceRun> RunSimulated(const RunPlan& plan, Bytes total, Bytes free,
                                       const std::vector<MemoryCall>* placed = nullptr);

// The first memory calls in which two runs differ.
struct CallDifference {
  std::optional<MemoryCall> predicted;  // absent: the other made one more
  std::optional<MemoryCall> measured;
};

// A run on a real device, and how it compares with two predictions. There are two because decisions
// also depend on where the driver places memory, which is unpredictable: among equal blocks PyTorch
// takes the lowest address, or the one of the oldest segment.
struct MeasuredRun {
  DeviceRun run;
  // Compared with the prediction made before, with the simulated device's addresses. It may differ
  // where the driver's layout decides between equal blocks.
  DecisionComparison as_predicted;
  // Compared with the prediction with this run's addresses. Any difference is a fault of the rules
  // of the simulated device, or of the measured one.
  DecisionComparison with_addresses;
  Bytes placed_peak_reserved;  // of the latter prediction
  int64_t placed_peak_used = 0;
  // The memory calls compared with the latter prediction's: what was requested, and whether it was
  // granted. A refusal that is overcome leaves no other trace.
  uint64_t calls_compared = 0;  // from the first on, as far as they are the same
  uint64_t calls_predicted = 0;
  std::vector<int64_t> predicted_used;  // by the latter prediction, after each call compared
  std::optional<CallDifference> calls_differ;
  // The largest difference in used bytes of the device after those calls: measured - predicted.
  int64_t largest_used_difference = 0;
  uint32_t largest_used_difference_request = kBeforeFirstRequest;

  // Returns whether this run did what the simulation does with its addresses.
  bool agrees() const {
    return with_addresses.all_equal() && !calls_differ.has_value() && !run.violation.has_value();
  }
};

// Why a schedule is too big for a device.
struct Shortage {
  int64_t needed = 0;     // bytes at the peak
  bool at_least = false;  // perhaps more, because it could not be run to the end
  Bytes free;             // of the device
  uint32_t request = 0;   // at which memory runs out, or that takes the most
};

// Checks before anything is allocated whether a schedule is too big. `predicted` is a
// RunSimulated() on `total` bytes of which `free` are free, if `asked` is absent, else on a device
// of `asked` bytes (--capacity, or the header of a written schedule). A schedule is too big if it
//   * uses more than the GPU has free, on `asked` bytes of memory; running out of memory within
//     `asked` is an outcome like any other; or
//   * is refused by the GPU more often, without `asked`, than it ran out of memory when it was
//     recorded.
std::optional<Shortage> FindShortage(const RunPlan& plan, const DeviceRun& predicted, Bytes free,
                                     std::optional<Bytes> asked, uint64_t recorded_ooms);

// Compares `run`, on a device of the same memory, with `predicted`, which is a RunSimulated().
// O(decisions).
absl::StatusOr<MeasuredRun> CompareWithPrediction(const RunPlan& plan, const DeviceRun& predicted,
                                                  DeviceRun run);

// Returns the position of a request as users know it: the recorded event for a recording, the
// request itself for a written schedule.
uint64_t PositionOf(const Schedule& schedule, uint32_t request);

// Returns microseconds since the first request, by request: the recorded time of a request's first
// event, or that of the request before if it has no events of its own. They never decrease,
// whatever the file says. Empty if the file has no times. O(requests).
std::vector<int64_t> RequestTimes(const Schedule& schedule);

}  // namespace memreplay
