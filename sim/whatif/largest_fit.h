// Finds the largest value of a number for which something still fits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

namespace memreplay {

enum class FitOutcome : uint8_t {
  kFits,
  kRunsOut,  // a larger value may fit although this one does not
  kNever,    // no allocator suffices, and a larger value needs no less
  kNoValue,  // there is no run with this value
  kUntried,  // there were enough runs; so it is for every value from now on
};

// The largest values that fit.
struct LargestFit {
  // Every value up to here fits. Absent if the first does not.
  std::optional<int64_t> safe;
  // The largest value tried that fits. It is above `safe` if fragmentation lets a larger one fit
  // although a smaller one does not. Absent if none fits.
  std::optional<int64_t> largest;
  // Whether all values up to `safe` were tried and the next does not fit; else only those in
  // `tried` were.
  bool safe_is_proven = false;
  // Whether all values above `largest` were tried up to one that never fits, or to the limit.
  bool largest_is_proven = false;
  std::map<int64_t, FitOutcome> tried;
};

// Finds the largest values that fit. Doubles from 1 until a value does not fit (or `limit` does)
// and bisects. Since fitting is not monotone, it then tries all values above the edge up to the
// first that never fits, and all below, nearest first, as far as `max_tries` allows. Calls
// `outcome` once per value, and may stop short of the edge if that returns kUntried.
LargestFit FindLargestFit(int64_t limit, uint64_t max_tries,
                          const std::function<FitOutcome(int64_t value)>& outcome);

}  // namespace memreplay
