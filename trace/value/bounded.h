// Sums of numbers that a file may have made up.
#pragma once

#include <algorithm>
#include <cstdint>

namespace memreplay {

// Limits a number, which a bad file may have made up, to 2^61 and -2^61.
[[gnu::always_inline]] inline int64_t Bounded(int64_t number) {
  constexpr int64_t kMax = int64_t{1} << 61;
  return std::clamp(number, -kMax, kMax);
}
[[gnu::always_inline]] inline int64_t BoundedSum(int64_t a, int64_t b) {
  return Bounded(Bounded(a) + Bounded(b));
}

// Returns whether `part` is less than one in `parts` of `all`, neither of which is negative.
inline bool IsLessThanOneIn(int64_t parts, int64_t part, int64_t all) {
  return part < all / parts + (all % parts != 0 ? 1 : 0);  // a product could overflow
}

}  // namespace memreplay
