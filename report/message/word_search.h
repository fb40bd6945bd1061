// Searches for many words at once in a long text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace memreplay {

// Wu and Manber's search (TR-94-17): it reads two bytes at a time and skips positions where no word
// can begin. A text that has few of the words is read at a gigabyte per second.
class WordSearch {
 public:
  // Each word has at least two bytes and must outlive this.
  explicit WordSearch(const std::vector<std::string_view>& words);

  // Calls `found` with the position and the index of each word that occurs, in order of position,
  // and with all words that begin at the same position.
  void Find(std::string_view text, absl::FunctionRef<void(size_t at, size_t word)> found) const;

 private:
  static size_t Key(const char* bytes) {
    return static_cast<uint8_t>(bytes[0]) | static_cast<size_t>(static_cast<uint8_t>(bytes[1]))
                                                << 8;
  }

  std::vector<std::string_view> words_;
  size_t shortest_ = 2;
  std::vector<uint8_t> shifts_;  // by key: how far the window may advance
  std::vector<uint16_t> first_;  // by key: index in candidates_, for keys with shift 0
  std::vector<std::vector<size_t>> candidates_;
};

}  // namespace memreplay
