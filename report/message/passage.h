// Undoes what terminals, loggers and mail do to a text: colours, prefixes, wrapped lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Characters that were taken out of a text.
struct Traced {
  std::string text;
  std::vector<size_t> from;  // of each byte, its place in the text that it was taken from

  void Add(char c, size_t place) {
    text += c;
    from.push_back(place);
  }
  // Removes the first bytes, or those from `size` on.
  void EraseFirst(size_t count);
  void Resize(size_t size);
};
// A part of a text as it was printed, but without its blanks: where a line was broken, nobody can
// see whether there was one. A blank is kept after an amount of memory, which ends there, between
// two digits of a line, and at the end of the text.
struct Passage : Traced {
  size_t at = 0;
};

// Returns about `before` bytes before and `after` bytes from the place `at` on. Lines are joined
// that have the prefix of the line of `at`, or else all up to the next line that has it; a line of
// another process, whose prefix differs in a number that is no time, is left out. O(before +
// after).
Passage PassageAround(std::string_view text, size_t at, size_t before, size_t after);

// Returns words as a passage has them.
std::string WithoutBlanks(std::string_view words);

// Returns in UTF-8 what is in UTF-16, as PowerShell writes files. A byte that is half a character
// is dropped; the halves of a pair become two characters of three bytes.
std::string FromUtf16(std::string_view text, bool is_little);

}  // namespace memreplay
