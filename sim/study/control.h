// What what-ifs about a recording are based on: the GPU as far as the recording shows it, and their
// control, the run in which nothing is changed.
#pragma once

#include <cstdint>

#include "sim/device/recorded_device.h"
#include "sim/device/simulated_device.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/units.h"

namespace memreplay {

// The recording's own settings on a device with the memory that the recording's had.
struct Control {
  Bytes peak_reserved;
  Bytes other_order_peak_reserved;  // with addresses in OtherOrder()
  uint64_t ooms = 0;
  uint64_t device_calls = 0;
};

constexpr AddressOrder OtherOrder(AddressOrder order) {
  return order == AddressOrder::kUpwards ? AddressOrder::kChunksDownwards : AddressOrder::kUpwards;
}

// Returns `settings` on a device with the memory that PyTorch could get, if a request was refused
// in the recording and neither a capacity nor an unlimited device is requested. That is what was in
// use and free when memory ran out, else the maximum known to have been granted. Unless one of
// these is requested, memory fractions are of the recorded GPU's memory, if that is known.
ReplaySettings OnRecordedGpu(const ReplaySettings& settings, const GpuLimits& card);

}  // namespace memreplay
