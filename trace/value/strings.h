// Abseil's string functions for std::string_view: Debian builds Abseil with an
// absl::string_view of its own, which does not convert from the standard one; and errors that name
// their place.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace memreplay {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

namespace strings_internal {
template <typename T>
decltype(auto) Piece(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return ToAbsl(value);
  } else {
    return (value);
  }
}
}  // namespace strings_internal

// Call absl::StrCat and absl::StrAppend, and take std::string_view too.
template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  return absl::StrCat(strings_internal::Piece(pieces)...);
}
template <typename... Pieces>
void StrAppend(std::string* text, const Pieces&... pieces) {
  absl::StrAppend(text, strings_internal::Piece(pieces)...);
}

// Returns an error of that kind that says what the pieces say together.
template <typename... Pieces>
absl::Status InvalidArgument(const Pieces&... pieces) {
  return absl::InvalidArgumentError(StrCat(pieces...));
}

// Returns an error with the place that it is about in front, a file, flag or command:
// "a.pickle: expected ...".
inline absl::Status Within(std::string_view place, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(place, ": ", ToStd(status.message())));
}

}  // namespace memreplay
