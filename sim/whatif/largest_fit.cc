#include "sim/whatif/largest_fit.h"

namespace memreplay {

LargestFit FindLargestFit(int64_t limit, uint64_t max_tries,
                          const std::function<FitOutcome(int64_t value)>& outcome) {
  LargestFit found;
  const auto probe = [&](int64_t value) {
    const auto known = found.tried.find(value);
    if (known != found.tried.end()) return known->second;
    const FitOutcome is = outcome(value);
    if (is != FitOutcome::kUntried) found.tried.emplace(value, is);
    return is;
  };
  const auto fits = [&](int64_t value) { return probe(value) == FitOutcome::kFits; };

  int64_t low = 0;  // the edge: low fits (or is 0), high does not (or is above limit)
  int64_t high = 1;
  while (high <= limit && fits(high)) {
    low = high;
    high = high <= limit / 2 ? 2 * high : high == limit ? limit + 1 : limit;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  const auto may_try = [&](int64_t value) {
    return found.tried.count(value) > 0 || found.tried.size() < max_tries;
  };
  const auto is_end = [](FitOutcome is) {
    return is == FitOutcome::kNever || is == FitOutcome::kUntried;
  };
  int64_t above = low + 1;
  while (above <= limit && may_try(above) && !is_end(probe(above))) ++above;
  found.largest_is_proven = above > limit || found.tried.count(above) > 0;
  int64_t below = low;
  while (below >= 1 && may_try(below) && probe(below) != FitOutcome::kUntried) --below;
  found.safe_is_proven = below < 1 && (low == limit || found.tried.count(low + 1) > 0);

  bool all_fit = true;
  for (const auto& [value, is] : found.tried) {
    all_fit = all_fit && (is == FitOutcome::kFits || is == FitOutcome::kNoValue);
    if (is != FitOutcome::kFits) continue;
    found.largest = value;
    if (all_fit) found.safe = value;
  }
  return found;
}

}  // namespace memreplay
