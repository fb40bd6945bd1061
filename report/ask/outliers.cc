#include "report/ask/outliers.h"

#include <algorithm>
#include <cstdlib>

#include "trace/value/median.h"

namespace memreplay {

std::vector<double> RobustScores(const std::vector<int64_t>& figures) {
  const int64_t median = Median(figures);
  std::vector<int64_t> distances;
  for (const int64_t figure : figures) distances.push_back(std::abs(figure - median));
  const double spread = std::max({1.4826 * static_cast<double>(Median(std::move(distances))),
                                  0.01 * static_cast<double>(median), 1.0});
  std::vector<double> scores;
  for (const int64_t figure : figures) {
    scores.push_back(static_cast<double>(figure - median) / spread);
  }
  return scores;
}

}  // namespace memreplay
