// Validation of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memreplay {

// Returns the length in bytes of the character at the start of `text`, which must not be empty; 0
// if it is invalid: overlong forms, numbers beyond U+10FFFF, and surrogates unless
// `surrogates_too`.
size_t Utf8Length(std::string_view text, bool surrogates_too = false);

// Returns the number of a character, given by its bytes, which are valid.
uint32_t CodePoint(std::string_view character);

// Returns whether a character controls the text around it or cannot be seen: the controls (below
// U+0020, U+007F to U+009F), separators of lines and paragraphs, what changes direction, and what
// has no width or no glyph (spaces of no width, joiners, fillers, variation selectors, tags,
// noncharacters).
bool IsControl(uint32_t point);

// Returns the beginning of `text` with at most `most` bytes that ends between two characters.
std::string_view CutText(std::string_view text, size_t most);

// Returns `text` with `replacement` for each byte that belongs to no character.
std::string ReplaceBadUtf8(std::string_view text, std::string_view replacement,
                           bool surrogates_too = false);

}  // namespace memreplay
