// Is the simulation right about a device? The same schedule predicted and measured,
// and held against each other, decision by decision.
#ifndef MEMREPLAY_SIM_CONFIRM_CONFIRMATION_H_
#define MEMREPLAY_SIM_CONFIRM_CONFIRMATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/confirm/device_run.h"
#include "sim/observe/decisions.h"

namespace memreplay {

// What decisions depend on and nobody can predict is where the driver places memory:
// among equal blocks PyTorch takes the lowest address, or the one of the oldest
// segment. So there are two predictions.
struct CallParting {
  std::optional<MemoryCall> predicted;  // absent: the other made one more
  std::optional<MemoryCall> measured;
};

// A run on a real device, and how it compares with the prediction.
struct MeasuredRun {
  DeviceRun run;
  // Held against the prediction made before, with the simulated device's addresses.
  // May differ where the driver's layout decides between equals.
  DecisionComparison as_predicted;
  // Against the prediction with this run's addresses. Any difference is a fault: of
  // the simulated device's rules, or of the measured one.
  DecisionComparison with_addresses;
  Bytes placed_peak_reserved;  // of the latter prediction
  int64_t placed_peak_used = 0;
  // The calls about memory, against the latter prediction's: what was asked, and
  // whether it was granted. A refusal that is overcome leaves no other trace.
  uint64_t calls_compared = 0;  // from the first on, as far as they are the same
  uint64_t calls_predicted = 0;
  std::vector<int64_t> predicted_used;  // by the latter prediction, after each call compared
  std::optional<CallParting> calls_part;
  // Where used bytes of the device differ most in those: measured - predicted.
  int64_t largest_used_difference = 0;
  uint32_t largest_used_difference_request = kBeforeFirstRequest;

  // No fault: what this run did is what the simulation does with its addresses.
  bool agrees() const {
    return with_addresses.all_equal() && !calls_part.has_value() && !run.violation.has_value();
  }
};

// Why a schedule is too big for a device.
struct Shortage {
  int64_t needed = 0;     // bytes at the peak
  bool at_least = false;  // perhaps more: it could not be run to the end
  Bytes free;             // of the device
  uint32_t request = 0;   // that memory runs out at, or that takes the most
};

// Looks before anything is allocated. `predicted` is a RunSimulated() on `total`
// bytes of which `free` are free, if `asked` is absent, else on a device of `asked`
// bytes (--capacity, or a program's header). Too big is what
//   * on `asked` bytes of memory uses more than the card has free; to run out of memory
//     within `asked` is an outcome like others, or
//   * without `asked` meets a refusal of the card more often than it ran out of
//     memory when it was recorded.
std::optional<Shortage> FindShortage(const RunPlan& plan, const DeviceRun& predicted, Bytes free,
                                     std::optional<Bytes> asked, uint64_t recorded_ooms);

// `predicted` on RunSimulated(); `run` on a device of the same memory. O(decisions).
absl::StatusOr<MeasuredRun> HoldAgainst(const RunPlan& plan, const DeviceRun& predicted,
                                        DeviceRun run);

// The position of a request as people know it: of a recording the recorded event,
// of a program the request itself.
uint64_t PositionOf(const Schedule& schedule, uint32_t request);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_CONFIRM_CONFIRMATION_H_
