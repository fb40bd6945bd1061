#include "report/message/word_search.h"

#include <algorithm>
#include <limits>

namespace memreplay {

WordSearch::WordSearch(const std::vector<std::string_view>& words)
    : words_(words), shifts_(size_t{1} << 16), first_(size_t{1} << 16) {
  shortest_ = std::numeric_limits<uint8_t>::max();
  for (const std::string_view word : words_) shortest_ = std::min(shortest_, word.size());
  std::fill(shifts_.begin(), shifts_.end(), static_cast<uint8_t>(shortest_ - 1));
  for (size_t index = 0; index < words_.size(); ++index) {
    const char* word = words_[index].data();
    for (size_t at = 0; at + 2 <= shortest_; ++at) {
      uint8_t& shift = shifts_[Key(word + at)];
      shift = std::min(shift, static_cast<uint8_t>(shortest_ - 2 - at));
    }
    uint16_t& first = first_[Key(word + shortest_ - 2)];
    if (first == 0) {
      candidates_.emplace_back();
      first = static_cast<uint16_t>(candidates_.size());
    }
    candidates_[first - 1].push_back(index);
  }
}

void WordSearch::Find(std::string_view text,
                      absl::FunctionRef<void(size_t at, size_t word)> found) const {
  for (size_t end = shortest_; end <= text.size();) {
    const size_t key = Key(text.data() + end - 2);
    const size_t shift = shifts_[key];
    if (shift > 0) {
      end += shift;
      continue;
    }
    const size_t at = end - shortest_;
    for (const size_t index : candidates_[first_[key] - 1]) {
      if (text.substr(at, words_[index].size()) == words_[index]) found(at, index);
    }
    ++end;
  }
}

}  // namespace memreplay
