// Validation of UTF-8.
#ifndef MEMREPLAY_TRACE_VALUE_UTF8_H_
#define MEMREPLAY_TRACE_VALUE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace memreplay {

// Returns the length in bytes of the character at the start of `text`, which must not be empty; 0
// if it is invalid: overlong forms, numbers beyond U+10FFFF, and surrogates unless
// `surrogates_too`.
size_t Utf8Length(std::string_view text, bool surrogates_too = false);

// Returns `text` with `replacement` for each byte that belongs to no character.
std::string ReplaceBadUtf8(std::string_view text, std::string_view replacement,
                           bool surrogates_too = false);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_VALUE_UTF8_H_
