#include "sim/whatif/largest_fit.h"

#include <algorithm>

namespace memreplay {
namespace {

constexpr int64_t kNeighbours = 3;  // on either side of the edge

}  // namespace

LargestFit FindLargestFit(int64_t limit, const std::function<bool(int64_t value)>& fits) {
  LargestFit found;
  const auto probe = [&](int64_t value) {
    const auto [at, is_new] = found.tried.emplace(value, false);
    if (is_new) at->second = fits(value);
    return at->second;
  };

  int64_t low = 0;  // the edge: low fits (or is 0), high does not (or is above limit)
  int64_t high = 1;
  while (high <= limit && probe(high)) {
    low = high;
    high = high <= limit / 2 ? 2 * high : high == limit ? limit + 1 : limit;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (probe(middle) ? low : high) = middle;
  }
  for (int64_t i = 1; i <= kNeighbours; ++i) {
    if (low - i >= 1) probe(low - i);
    if (low + i <= limit) probe(low + i);
  }
  for (const int64_t above : {low + low / 8, low + low / 4, low + low / 2}) {
    if (above > low && above <= limit) probe(above);
  }

  bool all_fit = true;
  for (const auto& [value, is_fit] : found.tried) {
    all_fit = all_fit && is_fit;
    if (is_fit) found.largest = value;
    if (all_fit) found.safe = value;
  }
  return found;
}

}  // namespace memreplay
