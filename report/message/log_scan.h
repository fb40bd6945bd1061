// Finds the last failure of a log of any length, in one pass and in bounded memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "report/message/forms.h"

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

// What is kept of a log: the failure to explain with its surroundings, and the counts.
struct LogExtract {
  const Form* form = nullptr;     // null: nothing about memory
  std::string window;             // the text around it
  size_t anchor = 0;              // where in the window
  std::optional<uint64_t> begin;  // of the window in the log; unknown of UTF-16
  std::string context;  // the beginning of the log, and lines of settings and of a server's start
  // How often an allocation failed. A repeated text counts once in `different`, which stops at some
  // thousands.
  int64_t failures = 0;
  int64_t different = 0;
};

// A scanner that is fed the log in pieces of any size, followed by Finish(). O(bytes), about 2 MiB
// of memory.
class LogScan {
 public:
  LogScan();
  void Add(std::string_view piece);
  LogExtract Finish();

 private:
  // The last place with a given strength.
  struct Kept {
    const Form* form = nullptr;
    uint64_t at = 0;
    uint64_t begin = 0;  // of the window
    std::string window;
  };
  void AddText(std::string_view piece);
  void Scan(bool is_last);
  void Count(std::string_view text, size_t at);

  bool knows_encoding_ = false;
  bool is_utf16_ = false;
  bool is_little_ = false;
  std::string half_;  // of a character
  std::vector<std::string_view> words_;
  WordSearch search_;
  std::string buffer_;  // the end of what was scanned, then what was not
  uint64_t buffer_begin_ = 0;
  size_t scanned_ = 0;  // of the buffer
  std::array<Kept, kMaxStrength + 1> kept_;
  std::string head_;
  std::vector<std::string> context_lines_;  // by context word: the last line that has it
  std::unordered_set<size_t> seen_;
  int64_t failures_ = 0;
};

}  // namespace memreplay
