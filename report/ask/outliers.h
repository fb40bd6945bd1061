// Finds figures that stand out among several.
#ifndef MEMREPLAY_REPORT_ASK_OUTLIERS_H_
#define MEMREPLAY_REPORT_ASK_OUTLIERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memreplay {

// Returns how far each figure is from the median, in standard deviations that a few outliers do not
// change: the median distance from the median, times 1.4826, but at least 1 % of the median. O(n).
std::vector<double> RobustScores(const std::vector<int64_t>& figures);

// Scores above this, in either direction, are outliers.
inline constexpr double kOutlierScore = 3.5;

// Sets `score` and `is_outlier` of each message from its figure. Does nothing for fewer than three,
// because neither of two figures stands out.
template <typename Message>
void MarkOutliers(const std::vector<int64_t>& figures, const std::vector<Message*>& messages) {
  if (figures.size() < 3) return;
  const std::vector<double> scores = RobustScores(figures);
  for (size_t i = 0; i < scores.size(); ++i) {
    messages[i]->set_score(scores[i]);
    messages[i]->set_is_outlier(scores[i] > kOutlierScore || scores[i] < -kOutlierScore);
  }
}

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_OUTLIERS_H_
