// Reduces page faults in large arrays that are filled from front to back.
#ifndef MEMREPLAY_TRACE_BYTES_HUGE_PAGES_H_
#define MEMREPLAY_TRACE_BYTES_HUGE_PAGES_H_

#include <sys/mman.h>

#include <cstdint>
#include <vector>

namespace memreplay {

// Requests pages of 2 MiB for the reserved and untouched part of `array`. This is a hint on which
// nothing depends.
template <typename T>
void PreferHugePages(std::vector<T>& array) {
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(array.data());
  const uintptr_t first = (begin + kHuge - 1) & ~(kHuge - 1);
  const uintptr_t last = (begin + array.capacity() * sizeof(T)) & ~(kHuge - 1);
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_HUGE_PAGES_H_
