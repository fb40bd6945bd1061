#include "sim/workload/repetition.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace memreplay {
namespace {

using Tokens = std::vector<uint32_t>;

constexpr size_t kMaxCandidates = 48;
constexpr size_t kMaxAnchors = 4;  // per width
constexpr size_t kWidths[] = {1, 4, 16};
// A mismatch outweighs this many matches: stretches agree to at least 7/8.
constexpr int64_t kMismatchCost = 7;
constexpr double kGoodEnough = 0.9;        // of the longest stretch
constexpr double kBetterAgreement = 0.03;  // worth a longer period

struct Stretch {
  size_t period = 0;
  size_t begin = 0;
  size_t length = 0;
  double agreement = 0;
};

// The longest stretch of tokens that repeats after `period`; one shorter than `wanted` may
// be left out.
Stretch LongestRepeat(const Tokens& tokens, size_t period, size_t wanted) {
  Stretch best;
  best.period = period;
  int64_t score = 0;
  int64_t best_score = 0;
  size_t best_matches = 0;
  size_t begin = 0;
  size_t matches = 0;
  for (size_t i = 0; i + period < tokens.size(); ++i) {
    const bool same = tokens[i] == tokens[i + period];
    score += same ? 1 : -kMismatchCost;
    matches += same;
    if (score <= 0) {
      score = 0;
      matches = 0;
      begin = i + 1;
      // What is left is too short.
      if (tokens.size() - begin < wanted && best.length < wanted) return best;
    } else if (score > best_score) {
      best_score = score;
      best_matches = matches;
      best.begin = begin;
      best.length = i + 1 - begin + period;
    }
  }
  if (best.length > 0) {
    best.agreement = static_cast<double>(best_matches) / static_cast<double>(best.length - period);
  }
  return best;
}

// Runs of `width` tokens, numbered: entry i is the run that begins at i. Those
// cut off by the end are all one.
struct Runs {
  size_t width = 1;
  Tokens runs;
  size_t distinct = 0;
};

// Two runs that follow each other are one of twice the width.
Runs TwiceAsWide(const Runs& half) {
  Runs result;
  result.width = 2 * half.width;
  result.runs.resize(half.runs.size());
  absl::flat_hash_map<uint64_t, uint32_t> known;
  for (size_t i = 0; i < half.runs.size(); ++i) {
    const size_t next = i + half.width;
    const uint64_t second = next < half.runs.size() ? half.runs[next] + uint64_t{1} : 0;
    const uint64_t both = second << 32 | half.runs[i];
    result.runs[i] = known.emplace(both, static_cast<uint32_t>(known.size())).first->second;
  }
  result.distinct = known.size();
  return result;
}

// Of each of kWidths.
std::vector<Runs> RunsOf(const Tokens& tokens, size_t distinct) {
  std::vector<Runs> all;
  Runs runs{1, tokens, distinct};
  for (const size_t width : kWidths) {
    while (runs.width < width) runs = TwiceAsWide(runs);
    all.push_back(runs);
  }
  return all;
}

// Distances between occurrences of one token, or run of tokens, that are common
// and long. (In a step of like layers no single token may occur just once.)
std::vector<size_t> CandidatePeriods(const Tokens& tokens, const std::vector<Runs>& widths) {
  absl::flat_hash_map<size_t, size_t> weight;
  for (const Runs& runs : widths) {
    std::vector<size_t> last(runs.distinct, tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      size_t& before = last[runs.runs[i]];
      if (before != tokens.size() && i - before > 1) weight[i - before] += 1;
      before = i;
    }
  }
  std::vector<std::pair<size_t, size_t>> ranked;  // weight * distance, distance
  for (const auto& [distance, count] : weight) {
    if (count < 2 || distance * kLeastRepeats > tokens.size()) continue;
    ranked.emplace_back(count * distance, distance);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > kMaxCandidates) ranked.resize(kMaxCandidates);
  std::vector<size_t> candidates;
  for (const auto& [score, distance] : ranked) candidates.push_back(distance);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

Stretch FindStretch(const Tokens& tokens, const std::vector<Runs>& widths) {
  std::vector<Stretch> stretches;
  size_t longest = 0;
  for (const size_t period : CandidatePeriods(tokens, widths)) {
    const auto wanted = static_cast<size_t>(kGoodEnough * static_cast<double>(longest));
    const Stretch stretch = LongestRepeat(tokens, period, wanted);
    if (stretch.length < kLeastRepeats * period) continue;
    stretches.push_back(stretch);
    longest = std::max(longest, stretch.length);
  }
  std::erase_if(stretches, [longest](const Stretch& stretch) {
    return static_cast<double>(stretch.length) < kGoodEnough * static_cast<double>(longest);
  });
  double best = 0;
  for (const Stretch& stretch : stretches) best = std::max(best, stretch.agreement);
  for (const Stretch& stretch : stretches) {
    if (stretch.agreement >= best - kBetterAgreement) return stretch;
  }
  return {};
}

// Where in the period, on average over the whole repeats, `level` is lowest.
size_t LowestOffset(const Stretch& stretch, const std::vector<int64_t>& level) {
  // Over the same number of repeats each, so that a growing trend prefers none.
  const size_t whole = stretch.length / stretch.period;
  size_t best = 0;
  double best_sum = 0;
  for (size_t offset = 0; offset < stretch.period; ++offset) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = stretch.begin + offset; i < stretch.begin + stretch.length && count < whole;
         i += stretch.period, ++count) {
      sum += static_cast<double>(level[i]);
    }
    if (count < whole) continue;
    if (offset == 0 || sum < best_sum) {
      best_sum = sum;
      best = offset;
    }
  }
  return best;
}

// The first few positions in a repeat whose token (or run) every repeat of the
// stretch has, there and nowhere else in it.
std::vector<size_t> FindAnchors(const Tokens& tokens, const std::vector<size_t>& begins,
                                size_t period) {
  absl::flat_hash_map<uint32_t, size_t> counts;
  for (size_t i = 0; i < period; ++i) ++counts[tokens[begins[0] + i]];
  std::vector<size_t> anchors;
  for (size_t offset = 0; offset < period && anchors.size() < kMaxAnchors; ++offset) {
    const uint32_t token = tokens[begins[0] + offset];
    if (counts[token] != 1) continue;
    bool everywhere = true;
    for (size_t k = 0; k + 1 < begins.size() && everywhere; ++k) {
      everywhere = tokens[begins[k] + offset] == token;
    }
    if (everywhere) anchors.push_back(offset);
  }
  return anchors;
}

// How many tokens of [from, to) are among those counted in `model`.
size_t Overlap(const Tokens& tokens, size_t from, size_t to,
               absl::flat_hash_map<uint32_t, int64_t>& model) {
  size_t same = 0;
  for (size_t i = from; i < to; ++i) {
    const auto found = model.find(tokens[i]);
    if (found != model.end() && found->second-- > 0) ++same;
  }
  for (size_t i = from; i < to; ++i) {
    const auto found = model.find(tokens[i]);
    if (found != model.end()) ++found->second;
  }
  return same;
}

// The repeats that begin so many tokens before a `sign` among the `runs`.
Repetition RepeatsAround(const Tokens& tokens, const Tokens& runs, uint32_t sign, size_t before,
                         size_t period, absl::flat_hash_map<uint32_t, int64_t>& model) {
  std::vector<size_t> at;  // where repeats would begin
  for (size_t i = before; i < tokens.size(); ++i) {
    if (runs[i] == sign) at.push_back(i - before);
  }
  Repetition found;
  found.period = period;
  bool whole = false;  // the last one
  for (size_t k = 0; k < at.size(); ++k) {
    if (!found.ends.empty() && at[k] < found.ends.back()) continue;
    const bool last = k + 1 == at.size();
    const size_t next = last ? tokens.size() : at[k + 1];
    // A repeat with something more in it is longer than the model; a much longer
    // interval holds something else as well.
    const size_t end = std::min(next, at[k] + period + period / 3);
    const size_t same = Overlap(tokens, at[k], end, model);
    if (same * 4 < period * 3) continue;
    found.begins.push_back(at[k]);
    found.ends.push_back(std::min(next, at[k] + std::max(period, same)));
    whole = !last || same == period;
  }
  // One that the end of the sequence cuts off ends the one before.
  if (!found.begins.empty() && !whole) {
    found.ends.pop_back();
  } else if (!found.begins.empty()) {
    found.begins.push_back(found.ends.back());
  }
  return found;
}

// Those of the stretch and elsewhere.
void LookElsewhere(const Tokens& tokens, const std::vector<Runs>& widths, Repetition* found) {
  const size_t period = found->period;
  const std::vector<size_t> stretch = found->begins;
  absl::flat_hash_map<uint32_t, int64_t> model;
  for (size_t i = 0; i < period; ++i) ++model[tokens[stretch[0] + i]];
  for (const auto& [width, runs, distinct] : widths) {
    for (const size_t anchor : FindAnchors(runs, stretch, period)) {
      Repetition around =
          RepeatsAround(tokens, runs, runs[stretch[0] + anchor], anchor, period, model);
      if (around.ends.size() <= found->ends.size()) continue;
      around.agreement = found->agreement;
      *found = std::move(around);
    }
  }
}

}  // namespace

Repetition FindRepetition(const Tokens& tokens, size_t distinct,
                          const std::vector<int64_t>& level) {
  Repetition found;
  const std::vector<Runs> widths = RunsOf(tokens, distinct);
  const Stretch stretch = FindStretch(tokens, widths);
  if (stretch.period == 0) return found;
  const size_t end = stretch.begin + stretch.length;
  for (size_t i = stretch.begin + LowestOffset(stretch, level); i < end; i += stretch.period) {
    found.begins.push_back(i);
  }
  // The last is whole only if the next would begin within the stretch.
  if (found.begins.size() <= kLeastRepeats) return {};
  found.period = stretch.period;
  found.agreement = stretch.agreement;
  found.ends.assign(found.begins.begin() + 1, found.begins.end());
  LookElsewhere(tokens, widths, &found);
  return found;
}

}  // namespace memreplay
