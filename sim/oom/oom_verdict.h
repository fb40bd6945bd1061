// The verdict on an out-of-memory error, from numbers alone.
#ifndef MEMREPLAY_SIM_OOM_OOM_VERDICT_H_
#define MEMREPLAY_SIM_OOM_OOM_VERDICT_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "trace/value/units.h"

namespace memreplay {

enum class OomVerdict : uint8_t {
  kExceedsDevice,    // the program needs more at once than the device has
  kTrueShortage,     // no packing of what is live leaves room for the request
  kFragmentation,    // there is room, in pieces
  kLeak,             // there is none, because every step leaves something behind
  kRefusedWithFree,  // the driver refused less than it called free
  kPendingFree,      // the request succeeds when made again after a synchronisation
};

// What PyTorch's message tells.
struct OomNumbers {
  Bytes tried;                    // what the driver was asked for
  Bytes device_free;              // what the driver has left
  Bytes allocated;                // by tensors, free blocks of private pools included
  Bytes reserved_unallocated;     // held by PyTorch, in no tensor and no private pool
  std::optional<Bytes> limit;     // of what PyTorch may hold
  std::optional<Bytes> capacity;  // of the card
};

// What a perfect packing could give to one request: what the driver (or the
// limit) would still grant, and what PyTorch holds unallocated.
constexpr Bytes Obtainable(const OomNumbers& numbers) {
  Bytes grantable = numbers.device_free;
  if (numbers.limit.has_value()) {
    const Bytes reserved = numbers.allocated + numbers.reserved_unallocated;
    const Bytes left = *numbers.limit > reserved ? *numbers.limit - reserved : Bytes();
    grantable = std::min(grantable, left);
  }
  return grantable + numbers.reserved_unallocated;
}

// Would perfect packing have served it? Numbers cannot tell a leak, or frees
// that wait, from a shortage.
constexpr OomVerdict JudgeNumbers(const OomNumbers& numbers) {
  if (!numbers.limit.has_value() && numbers.device_free >= numbers.tried) {
    return OomVerdict::kRefusedWithFree;
  }
  return Obtainable(numbers) >= numbers.tried ? OomVerdict::kFragmentation
                                              : OomVerdict::kTrueShortage;
}

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OOM_OOM_VERDICT_H_
