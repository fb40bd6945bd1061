// Repetition in a sequence of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memreplay {

inline constexpr size_t kMinRepeats = 3;

// A stretch of tokens that repeats itself.
struct Repetition {
  size_t period = 0;  // in tokens; 0 if nothing repeats three times
  // Positions where repeats begin, ascending, followed by the end of the last.
  std::vector<size_t> begins;
  // The end of each repeat. Something else (an evaluation between training steps) may follow before
  // the next begins.
  std::vector<size_t> ends;
  double agreement = 0;    // share of the tokens inside that recur one repeat later
  size_t inside() const {  // tokens in repeats
    size_t sum = 0;
    for (size_t i = 0; i < ends.size(); ++i) sum += ends[i] - begins[i];
    return sum;
  }
};

// Finds the shortest period of those under which the longest stretch repeats, at least three times
// and with seven of eight tokens the same. A longer one is preferred if it agrees better (the
// layers of a model repeat too, but not across its ends). Repeats begin where `level` is lowest on
// average. They are also searched for outside the stretch: from a token (or run of tokens) that
// every repeat has just once to the next such token, if three of four tokens are those of a repeat.
// Tokens are numbers below `distinct`; `level` has one entry for each. O(tokens), a constant number
// of passes.
Repetition FindRepetition(const std::vector<uint32_t>& tokens, size_t distinct,
                          const std::vector<int64_t>& level);

}  // namespace memreplay
