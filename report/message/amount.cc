#include "report/message/amount.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr double kMaxAmount = 0x1p60;
constexpr double kMaxNumber = 1e15;
constexpr size_t kMaxDigits = 24;
constexpr size_t kMaxAmountLength = 40;

constexpr struct {
  std::string_view name;
  int64_t bytes;
} kUnits[] = {
    // Longer names come first.
    {"bytes", 1},
    {"byte", 1},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
    {"kB", int64_t{1} << 10},
    {"KB", int64_t{1} << 10},
    {"MB", int64_t{1} << 20},
    {"GB", int64_t{1} << 30},
    {"TB", int64_t{1} << 40},
    {"B", 1},
    {"K", int64_t{1} << 10},
    {"M", int64_t{1} << 20},
    {"G", int64_t{1} << 30},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Digits {
  double value = 0;
  size_t length = 0;
  int decimals = 0;
};

size_t CountDigits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// Returns the number with commas that `text` begins with, "1,50" or "25,600,000", without them: two
// digits at the end are decimals. "" if it begins with none.
std::string WithoutCommas(std::string_view text, size_t* length) {
  std::string number(text.substr(0, CountDigits(text)));
  *length = number.size();
  while (*length > 0 && *length < kMaxDigits && text.substr(*length).starts_with(',')) {
    const std::string_view rest = text.substr(*length + 1);
    const size_t digits = CountDigits(rest);
    const bool is_first = number.size() == *length;
    const bool is_decimal = is_first && digits == 2 && !rest.substr(2).starts_with('.');
    if (!is_decimal && digits != 3) return "";
    StrAppend(&number, is_decimal ? "." : "", rest.substr(0, digits));
    *length += 1 + digits;
    if (is_decimal) break;
  }
  return number.find('.') != std::string::npos || number.size() < *length ? number : "";
}

std::optional<Digits> ReadDigits(std::string_view text) {
  Digits digits;
  bool has_point = false;
  while (digits.length < text.size() && digits.length <= kMaxDigits) {
    const char c = text[digits.length];
    if (c == '.' && !has_point && digits.length + 1 < text.size() &&
        IsDigit(text[digits.length + 1])) {
      has_point = true;
    } else if (IsDigit(c)) {
      digits.decimals += has_point ? 1 : 0;
    } else {
      break;
    }
    ++digits.length;
  }
  if (digits.length == 0 || digits.length > kMaxDigits || !IsDigit(text[0]) ||
      !absl::SimpleAtod(ToAbsl(text.substr(0, digits.length)), &digits.value)) {
    return std::nullopt;
  }
  return digits;
}

}  // namespace

std::optional<double> ReadNumber(std::string_view text, size_t* length) {
  const std::optional<Digits> digits = ReadDigits(text);
  if (!digits.has_value() || !(digits->value < kMaxNumber)) return std::nullopt;
  if (length != nullptr) *length = digits->length;
  return digits->value;
}

std::optional<Amount> ReadAmount(std::string_view text, int64_t default_unit) {
  size_t end = 0;
  const std::string number = default_unit == 0 ? WithoutCommas(text, &end) : "";
  const std::optional<Digits> digits = ReadDigits(number.empty() ? text : number);
  if (!digits.has_value()) return std::nullopt;
  if (number.empty()) end = digits->length;
  int64_t unit = default_unit;
  const size_t blank = end < text.size() && text[end] == ' ' ? 1 : 0;
  const std::string_view rest = text.substr(std::min(text.size(), end + blank));
  for (const auto& row : kUnits) {
    // "mib" is no millibit, but "4 b" is not always a size.
    if (!rest.starts_with(row.name) &&
        !(row.name.size() == 3 && absl::StartsWithIgnoreCase(ToAbsl(rest), ToAbsl(row.name)))) {
      continue;
    }
    // "4 Boxes" has no unit.
    if (rest.size() > row.name.size() && absl::ascii_isalnum(rest[row.name.size()])) {
      continue;
    }
    unit = row.bytes;
    end += blank + row.name.size();
    break;
  }
  if (unit == 0) return std::nullopt;
  const double bytes = digits->value * static_cast<double>(unit);
  if (!(bytes < kMaxAmount)) return std::nullopt;
  const double step = static_cast<double>(unit) * std::pow(10.0, -digits->decimals);
  return Amount{std::llround(bytes), unit == 1 ? 0 : std::llround(step / 2), 0, end};
}

std::optional<Amount> ReadAmountBackwards(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '(')) text.remove_suffix(1);
  // Number and unit are adjacent or one blank apart, and the amount begins where its digits begin.
  size_t begin = text.size();
  const size_t earliest = text.size() - std::min(text.size(), kMaxAmountLength);
  while (begin > earliest && !IsDigit(text[begin - 1])) --begin;
  const size_t last = begin;
  for (const std::string_view marks : {".,", "."}) {  // a comma may part a list
    begin = last;
    while (begin > earliest &&
           (IsDigit(text[begin - 1]) || marks.find(text[begin - 1]) != std::string_view::npos)) {
      --begin;
    }
    while (begin < text.size() && !IsDigit(text[begin])) ++begin;
    if (begin == 0) return std::nullopt;  // there may have been more digits
    std::optional<Amount> amount = ReadAmount(text.substr(begin));
    if (!amount.has_value() || begin + amount->length != text.size()) continue;
    amount->at = begin;
    return amount;
  }
  return std::nullopt;
}

}  // namespace memreplay
