// How PyTorch turns a requested size into a block size and a segment size. The constants have
// PyTorch's names. Source: docs/fidelity.md [sizes].
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/units.h"

namespace memreplay {

inline constexpr Bytes kMinBlockSize{512};            // every block is a multiple of this
inline constexpr Bytes kSmallSize = MiB(1);           // largest rounded size of the small pool
inline constexpr Bytes kSmallBuffer = MiB(2);         // segment, and page, of the small pool
inline constexpr Bytes kMinLargeAlloc = MiB(10);      // from here on, a segment of its own size
inline constexpr Bytes kLargeBuffer = MiB(20);        // default large_segment_size
inline constexpr Bytes kRoundLarge = MiB(2);          // such segments are multiples of this
inline constexpr Bytes kTooLarge{uint64_t{1} << 60};  // requests from here on are refused at once

// Returns the configured divisions for sizes like `size` (> 0). There is one value for each power
// of two from 1 MiB; smaller and larger sizes share the first and the last.
inline uint64_t RoundupPower2Divisions(Bytes size, const AllocatorConfig& config) {
  const int log2 = std::bit_width(size.value()) - 1;
  return config.roundup_power2_divisions[static_cast<size_t>(std::clamp(log2 - 20, 0, 15))];
}

// Returns `size` rounded up to the next of `divisions` equal steps between its power of two and the
// following one. `divisions` is a power of two, at least 2.
inline Bytes RoundupPower2NextDivision(Bytes size, uint64_t divisions) {
  // std::has_single_bit() counts all bits.
  if ((size.value() & (size.value() - 1)) == 0) return size;
  const uint64_t floor = std::bit_floor(size.value());
  const uint64_t step = floor >> (std::bit_width(divisions) - 1);
  if (step == 0) return Bytes(floor << 1);
  return Bytes((size.value() + step - 1) & ~(step - 1));
}

// Returns the size of the block for a request of `size` (> 0, < kTooLarge).
inline Bytes RoundSize(Bytes size, const AllocatorConfig& config, const TorchProfile& profile) {
  if (size < kMinBlockSize) return kMinBlockSize;
  const uint64_t divisions = RoundupPower2Divisions(size, config);
  if (divisions != 0 && size.value() > kMinBlockSize.value() * divisions) [[unlikely]] {
    if (divisions > 1) return RoundupPower2NextDivision(size, divisions);
    if (profile.division_one_keeps_size) return size;
  }
  return Bytes((size.value() + kMinBlockSize.value() - 1) & ~(kMinBlockSize.value() - 1));
}

// Returns the size of the segment to request from the driver for a block of `rounded` bytes.
inline Bytes AllocationSize(Bytes rounded, const AllocatorConfig& config) {
  if (rounded <= kSmallSize) return kSmallBuffer;
  if (rounded < kMinLargeAlloc) return config.large_segment_size;
  return RoundUp(rounded, kRoundLarge);
}

// Returns the address space that an expandable segment reserves on a device of `total_memory`,
// before it is rounded up to pages.
inline Bytes ExpandableReservation(Bytes total_memory, const AllocatorConfig& config) {
  const Bytes most = total_memory + Bytes(total_memory.value() / 8);
  const ExpandableReserve& reserve = config.expandable_segments_reserve;
  if (reserve.bytes.value() != 0) return std::min(reserve.bytes, most);
  if (reserve.share <= 0) return most;
  const double wanted = reserve.share * static_cast<double>(total_memory.value());
  return wanted < static_cast<double>(most.value()) ? Bytes(static_cast<uint64_t>(wanted)) : most;
}

// Returns whether a block of `rounded` bytes comes from the small pool.
constexpr bool IsSmall(Bytes rounded) { return rounded <= kSmallSize; }

}  // namespace memreplay
