// What what-ifs about a recording stand on: the card as far as the recording tells of it,
// and their control, the run in which nothing is changed.
#ifndef MEMREPLAY_SIM_WHATIF_CONTROL_H_
#define MEMREPLAY_SIM_WHATIF_CONTROL_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "sim/device/recorded_device.h"
#include "sim/device/simulated_device.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The recording's own settings on a device with the memory that the recording's had.
struct Control {
  Bytes peak_reserved;
  Bytes other_order_peak_reserved;  // with addresses in OtherOrder()
  uint64_t ooms = 0;
};

struct WhatIfBasis {
  CardLimits card;
  MemoryState start;               // the segments that the recording began with
  std::optional<Control> control;  // absent: a program
};

constexpr AddressOrder OtherOrder(AddressOrder order) {
  return order == AddressOrder::kUpwards ? AddressOrder::kChunksDownwards : AddressOrder::kUpwards;
}

// `replay`: the exact replay under the recorded settings, which is made here if that is
// null. Two runs besides. Of a program: nothing. Error: ReplayWhatIf()'s.
absl::StatusOr<WhatIfBasis> FindBasis(const Schedule& schedule, const ReplaySettings& settings,
                                      const ExactReplayResult* replay = nullptr);

// `settings` on a device with the memory that PyTorch could get, where a request was refused
// in the recording and neither a capacity nor an unlimited device is asked for: what was
// in use and free when memory ran out, else the most that is known to have been granted.
ReplaySettings OnRecordedCard(const ReplaySettings& settings, const CardLimits& card);

// Peak of reserved memory of the same run with addresses in the other order.
absl::StatusOr<Bytes> PeakInOtherOrder(const Schedule& schedule, const ReplaySettings& settings,
                                       const WhatIfOptions& options);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_CONTROL_H_
