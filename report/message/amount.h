// Parses sizes as error texts print them: "1.50 GiB", "1,50 GiB", "25,600,000 bytes", "72GB".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

// An amount of memory. `bytes` is what was printed, and the true number lies within `rounding` of
// it: half a unit of the last printed digit.
struct Amount {
  int64_t bytes = 0;
  int64_t rounding = 0;
  uint64_t at = 0;  // where in the text it was read from; of a sum, nowhere
  size_t length = 0;

  Amount WithoutPlace() const { return {bytes, rounding}; }
};

inline Amount operator+(const Amount& a, const Amount& b) {
  return {a.bytes + b.bytes, a.rounding + b.rounding};
}
inline Amount operator-(const Amount& a, const Amount& b) {
  return {a.bytes - b.bytes, a.rounding + b.rounding};
}

// Returns the size that `text` begins with. All tools whose output is read here divide by 1024,
// whether they write GB, GiB or G. Sizes above 2^60 bytes are rejected: no machine has as much, and
// sums of several still fit. `default_unit` is the unit of a bare number, such as "19.77" in
// "19.77/22.05 GiB"; 0 means that a unit is required.
std::optional<Amount> ReadAmount(std::string_view text, int64_t default_unit = 0);
// Returns the size that `text` ends with, ignoring blanks and '('; nothing if it begins there too,
// where it may be cut.
std::optional<Amount> ReadAmountBackwards(std::string_view text);
// Returns the number that `text` begins with, "0.9" or "32768"; not negative, below 10^15.
std::optional<double> ReadNumber(std::string_view text, size_t* length = nullptr);

inline std::string_view Trim(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

inline std::string Size(const Amount& amount) { return FormatSize(amount.bytes); }

}  // namespace memreplay
