// Checks whether the simulation is right about a device: the same schedule is predicted and
// measured, and the two are compared decision by decision.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/confirm/device_run.h"
#include "sim/observe/decisions.h"

namespace memreplay {

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

}  // namespace memreplay
