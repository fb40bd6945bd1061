// Makes text from files fit for a report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace memreplay {

// Returns valid UTF-8 without characters that control text or cannot be seen (IsControl()), as
// protobuf's strings and terminals require it; each of these, and each other byte, becomes '?'.
std::string CleanText(std::string_view text);
// Does the same; a longer text is cut to its first `most` bytes and " ...".
std::string CleanText(std::string_view text, size_t most);

// Returns a word as a shell takes it: quoted where it needs to be.
std::string ShellWord(std::string_view word);

// Returns the candidate nearest to `word` by edit distance if it is near enough to have been
// meant, else an empty text.
std::string_view NearestWord(std::string_view word, absl::Span<const std::string_view> candidates);

}  // namespace memreplay
