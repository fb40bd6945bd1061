#include "sim/workload/repetition.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"

namespace memreplay {
namespace {

using Tokens = std::vector<uint32_t>;

constexpr size_t kBlock = 64;  // tokens that are compared at once
constexpr size_t kMaxCandidates = 48;
constexpr size_t kMaxAnchors = 4;  // per width
constexpr size_t kWidths = 3;      // of runs: 1, 4 and 16
constexpr size_t kJoined = 4;      // runs make one of the next width
constexpr size_t kPadding = 12;    // as far as the last of them may be beyond the end
constexpr uint32_t kNoPosition = ~uint32_t{0};
// A mismatch outweighs this many matches, so stretches agree to at least 7/8.
constexpr size_t kMismatchCost = 7;
constexpr double kGoodEnough = 0.9;        // of the longest stretch
constexpr double kBetterAgreement = 0.03;  // worth a longer period

struct Stretch {
  size_t period = 0;
  size_t begin = 0;
  size_t length = 0;
  double agreement = 0;
};

// Returns how many tokens from `a` on equal those from `b` on, at most `most`.
size_t EqualTokens(const uint32_t* a, const uint32_t* b, size_t most) {
  size_t same = 0;
  while (same + kBlock <= most && std::memcmp(a + same, b + same, kBlock * sizeof *a) == 0) {
    same += kBlock;
  }
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

// Returns the longest stretch of tokens that repeats after `period`. It may miss one shorter than
// `wanted`.
Stretch LongestRepeat(const Tokens& tokens, size_t period, size_t wanted) {
  Stretch best;
  best.period = period;
  int64_t score = 0;
  int64_t best_score = 0;
  size_t best_matches = 0;
  size_t begin = 0;
  size_t matches = 0;
  const size_t end = tokens.size() - std::min(period, tokens.size());
  for (size_t i = 0; i < end;) {
    if (const size_t same = EqualTokens(&tokens[i], &tokens[i + period], end - i); same > 0) {
      i += same;
      score += static_cast<int64_t>(same);
      matches += same;
      if (score > best_score) {
        best_score = score;
        best_matches = matches;
        best.begin = begin;
        best.length = i - begin + period;
      }
      continue;
    }
    ++i;
    score -= int64_t{kMismatchCost};
    if (score > 0) continue;
    score = 0;
    matches = 0;
    begin = i;
    // The rest is too short.
    if (tokens.size() - begin < wanted && best.length < wanted) return best;
  }
  if (best.length > 0) {
    best.agreement = static_cast<double>(best_matches) / static_cast<double>(best.length - period);
  }
  return best;
}

// Runs of `width` tokens, numbered: entry i is the run that begins at i. No other is equal to one
// that the end cuts off. Behind the last, kPadding entries have a number that no run has.
struct Runs {
  size_t width = 1;
  Tokens runs;
  size_t distinct = 0;
};

// Joins runs: four that follow each other make one of four times the width.
Runs FourTimesAsWide(const Runs& quarter) {
  const size_t width = quarter.width;
  const size_t count = quarter.runs.size() - kPadding;
  const uint32_t* const runs = quarter.runs.data();
  const auto half = [&](size_t i) { return uint64_t{runs[i]} << 32 | runs[i + width]; };
  Runs result;
  result.width = kJoined * width;
  result.runs.resize(count + kPadding);
  // The first position of each run, and the numbers of the runs that occur, which stand for it.
  std::vector<uint32_t> first;
  const auto hash = [&](uint32_t run) {
    return absl::HashOf(half(first[run]), half(first[run] + 2 * width));
  };
  const auto equal = [&](uint32_t a, uint32_t b) {
    return half(first[a]) == half(first[b]) &&
           half(first[a] + 2 * width) == half(first[b] + 2 * width);
  };
  absl::flat_hash_set<uint32_t, decltype(hash), decltype(equal)> known(0, hash, equal);
  known.reserve(count);
  // The last position of a given first quarter, because what follows it usually recurs.
  std::vector<uint32_t> last(quarter.distinct, kNoPosition);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t before = std::exchange(last[runs[i]], i);
    if (before != kNoPosition && half(before) == half(i) &&
        half(before + 2 * width) == half(i + 2 * width)) {
      result.runs[i] = result.runs[before];
      continue;
    }
    first.push_back(i);
    const auto [run, is_new] = known.insert(static_cast<uint32_t>(known.size()));
    if (!is_new) first.pop_back();
    result.runs[i] = *run;
  }
  result.distinct = known.size();
  std::fill_n(result.runs.begin() + static_cast<ptrdiff_t>(count), kPadding,
              static_cast<uint32_t>(result.distinct));
  return result;
}

// Returns the runs of each width.
std::vector<Runs> RunsOf(const Tokens& tokens, size_t distinct) {
  std::vector<Runs> all;
  all.push_back({1, tokens, distinct});
  all[0].runs.resize(tokens.size() + kPadding, static_cast<uint32_t>(distinct));
  while (all.size() < kWidths) all.push_back(FourTimesAsWide(all.back()));
  return all;
}

// Returns distances between occurrences of one token, or run of tokens, that are common and long.
// (In a step of similar layers no single token may occur just once.)
std::vector<size_t> CandidatePeriods(const Tokens& tokens, const std::vector<Runs>& widths) {
  const size_t longest = tokens.size() / kMinRepeats;
  std::vector<uint32_t> weight(longest + 1);  // by distance
  for (const Runs& runs : widths) {
    std::vector<size_t> last(runs.distinct, tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      size_t& before = last[runs.runs[i]];
      if (const size_t distance = i - before; distance <= longest) ++weight[distance];
      before = i;
    }
  }
  std::vector<std::pair<size_t, size_t>> ranked;  // weight * distance, distance
  for (size_t distance = 2; distance <= longest; ++distance) {
    if (weight[distance] >= 2) ranked.emplace_back(weight[distance] * distance, distance);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > kMaxCandidates) ranked.resize(kMaxCandidates);
  std::vector<size_t> candidates;
  for (const auto& [score, distance] : ranked) candidates.push_back(distance);
  return candidates;
}

// Returns how many tokens of each whole block recur after `period`.
std::vector<uint8_t> RecurringByBlock(const Tokens& tokens, size_t period) {
  std::vector<uint8_t> recurring((tokens.size() - period) / kBlock);
  const uint32_t* a = tokens.data();
  for (uint8_t& in_block : recurring) {
    uint32_t same = 0;
    for (size_t k = 0; k < kBlock; ++k) same += a[k] == a[k + period];
    in_block = static_cast<uint8_t>(same);
    a += kBlock;
  }
  return recurring;
}

// Returns whether LongestRepeat() may find a stretch of `wanted` tokens. Its parts outside of whole
// blocks are shorter than two blocks.
bool MayRepeat(const std::vector<uint8_t>& recurring, size_t period, size_t wanted) {
  const size_t least = (wanted - period) / kBlock;  // in blocks, including partial ones
  if (least <= 2) return true;
  const auto score = [&](size_t block) {
    return int64_t{recurring[block]} * (kMismatchCost + 1) - int64_t{kBlock * kMismatchCost};
  };
  // The sum over the blocks before `end`, and the lowest sum before the last `least` - 2.
  int64_t sum = 0, sum_before = 0, lowest = 0;
  for (size_t end = 1; end <= recurring.size(); ++end) {
    sum += score(end - 1);
    if (end < least - 2) continue;
    if (end > least - 2) sum_before += score(end - (least - 2) - 1);
    lowest = std::min(lowest, sum_before);
    if (sum - lowest > -int64_t{2 * kBlock}) return true;
  }
  return false;
}

Stretch FindStretch(const Tokens& tokens, const std::vector<Runs>& widths) {
  struct Candidate {
    size_t period;
    std::vector<uint8_t> recurring;
    size_t sum;
  };
  std::vector<Candidate> candidates;
  for (const size_t period : CandidatePeriods(tokens, widths)) {
    std::vector<uint8_t> recurring = RecurringByBlock(tokens, period);
    const size_t sum = std::accumulate(recurring.begin(), recurring.end(), size_t{0});
    candidates.push_back({period, std::move(recurring), sum});
  }
  // Candidates in which most tokens recur have the longest stretches.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.sum > b.sum; });
  std::vector<Stretch> stretches;
  size_t longest = 0;
  for (const auto& [period, recurring, sum] : candidates) {
    const auto wanted = std::max(static_cast<size_t>(kGoodEnough * static_cast<double>(longest)),
                                 kMinRepeats * period);
    if (!MayRepeat(recurring, period, wanted)) continue;
    const Stretch stretch = LongestRepeat(tokens, period, wanted);
    if (stretch.length < kMinRepeats * period) continue;
    stretches.push_back(stretch);
    longest = std::max(longest, stretch.length);
  }
  std::erase_if(stretches, [longest](const Stretch& stretch) {
    return static_cast<double>(stretch.length) < kGoodEnough * static_cast<double>(longest);
  });
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.period < b.period; });
  double best = 0;
  for (const Stretch& stretch : stretches) best = std::max(best, stretch.agreement);
  for (const Stretch& stretch : stretches) {
    if (stretch.agreement >= best - kBetterAgreement) return stretch;
  }
  return {};
}

// Returns the offset in the period at which `level` is lowest, averaged over the whole repeats.
size_t LowestOffset(const Stretch& stretch, const std::vector<int64_t>& level) {
  // Each average has the same number of repeats, so that a growing trend prefers no offset.
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

// Returns the first few positions in a repeat whose token (or run) occurs there in every repeat of
// the stretch and nowhere else in it.
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

// The tokens of a repeat, and how often each of all tokens is among them.
struct Model {
  Tokens tokens;
  std::vector<uint32_t> counts;
};

// Returns how many tokens of [from, to) are among those of the model.
size_t Overlap(const Tokens& tokens, size_t from, size_t to, Model& model) {
  // They are usually the same, in the same order.
  const size_t most = std::min(to - from, model.tokens.size());
  if (EqualTokens(&tokens[from], model.tokens.data(), most) == most) return most;
  size_t same = 0;
  for (size_t i = from; i < to; ++i) {
    uint32_t& left = model.counts[tokens[i]];
    if (left == 0) continue;
    --left;
    ++same;
  }
  for (size_t i = from; i < to; ++i) model.counts[tokens[i]] = 0;
  for (const uint32_t token : model.tokens) model.counts[token] = 0;
  for (const uint32_t token : model.tokens) ++model.counts[token];
  return same;
}

// Returns the repeats that begin `before` tokens before a `sign` among the `runs`.
Repetition RepeatsAround(const Tokens& tokens, const Tokens& runs, uint32_t sign, size_t before,
                         size_t period, Model& model) {
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
    // A repeat with additional tokens is longer than the model; a much longer interval also
    // contains something else.
    const size_t end = std::min(next, at[k] + period + period / 3);
    const size_t same = Overlap(tokens, at[k], end, model);
    if (same * 4 < period * 3) continue;
    found.begins.push_back(at[k]);
    found.ends.push_back(std::min(next, at[k] + std::max(period, same)));
    whole = !last || same == period;
  }
  // A repeat that the end of the sequence cuts off ends the one before it.
  if (!found.begins.empty() && !whole) {
    found.ends.pop_back();
  } else if (!found.begins.empty()) {
    found.begins.push_back(found.ends.back());
  }
  return found;
}

// Adds repeats outside the stretch.
void LookElsewhere(const Tokens& tokens, const std::vector<Runs>& widths, Repetition* found) {
  const size_t period = found->period;
  const std::vector<size_t> stretch = found->begins;
  Model model;
  model.tokens.assign(&tokens[stretch[0]], &tokens[stretch[0]] + period);
  model.counts.resize(widths[0].distinct);
  for (const uint32_t token : model.tokens) ++model.counts[token];
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
  // The last repeat is whole only if the next would begin within the stretch.
  if (found.begins.size() <= kMinRepeats) return {};
  found.period = stretch.period;
  found.agreement = stretch.agreement;
  found.ends.assign(found.begins.begin() + 1, found.begins.end());
  LookElsewhere(tokens, widths, &found);
  return found;
}

}  // namespace memreplay
