// The largest value of a number for which something still fits.
#ifndef MEMREPLAY_SIM_WHATIF_LARGEST_FIT_H_
#define MEMREPLAY_SIM_WHATIF_LARGEST_FIT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace memreplay {

struct LargestFit {
  // The largest of all tried that fits; absent: 1 does not.
  std::optional<int64_t> largest;
  // Every value tried up to here fits: below `largest` where fragmentation lets a
  // larger one fit though a smaller one does not.
  std::optional<int64_t> safe;
  std::map<int64_t, bool> tried;
};

// Doubles from 1 until a value does not fit (or `limit` does), bisects, and, since
// fitting is not monotone by nature, tries the neighbours of the edge and a few
// values above it. Calls `fits` once per value.
LargestFit FindLargestFit(int64_t limit, const std::function<bool(int64_t value)>& fits);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_LARGEST_FIT_H_
