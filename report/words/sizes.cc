#include "report/words/sizes.h"

#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

struct UnitName {
  std::string_view name;  // lower case
  double factor;
};

constexpr UnitName kUnitNames[] = {
    {"", 1},
    {"b", 1},
    {"bytes", 1},
    {"k", 0x1p10},
    {"ki", 0x1p10},
    {"kib", 0x1p10},
    {"m", 0x1p20},
    {"mi", 0x1p20},
    {"mib", 0x1p20},
    {"g", 0x1p30},
    {"gi", 0x1p30},
    {"gib", 0x1p30},
    {"t", 0x1p40},
    {"ti", 0x1p40},
    {"tib", 0x1p40},
    {"kb", 1000},
    {"mb", 1000000.0},
    {"gb", 1000000000.0},
    {"tb", 1000000000000.0},
};

absl::Status BadSize(std::string_view text) {
  return InvalidArgument(
      "expected a size such as 80GiB, 512MiB, 12GB or a number of bytes, found '", text, "'");
}

}  // namespace

std::string FormatSize(int64_t bytes) {
  const bool negative = bytes < 0;
  double value = std::fabs(static_cast<double>(bytes));
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // 1023.9996 MiB would print as 1024 MiB.
  if (unit > 0 && unit + 1 < kUnits.size() && value >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return absl::StrFormat("%s%.*f %s", negative ? "-" : "", decimals, value, ToAbsl(kUnits[unit]));
}

std::string FormatSizeExactly(int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return StrCat(bytes, " bytes");
  return StrCat(FormatSize(bytes), " (", FormatCount(bytes), " bytes)");
}

std::string FormatSizeChange(int64_t bytes) {
  return StrCat(bytes > 0 ? "+" : "", FormatSize(bytes));
}

std::string FormatCount(int64_t count) {
  std::string digits = StrCat(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string FormatValue(double value) { return absl::StrFormat("%.15g", value); }

std::string FormatCount(int64_t count, std::string_view noun) {
  return StrCat(FormatCount(count), " ", noun, count == 1 ? "" : "s");
}

std::string FormatDuration(int64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrFormat("%d ns", nanoseconds);
  if (nanoseconds < 1'000'000) return absl::StrFormat("%.1f us", value / 1e3);
  if (nanoseconds < 1'000'000'000) return absl::StrFormat("%.2f ms", value / 1e6);
  return absl::StrFormat("%.2f s", value / 1e9);
}

std::string FormatPart(int64_t part, int64_t whole) {
  return part == whole ? StrCat("all ", FormatCount(whole))
                       : StrCat(FormatCount(part), " of ", FormatCount(whole));
}

absl::StatusOr<Bytes> ParseSize(std::string_view text) {
  std::string_view rest = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  size_t length = 0;
  while (length < rest.size() && (absl::ascii_isdigit(rest[length]) || rest[length] == '.')) {
    ++length;
  }
  const std::string_view number = rest.substr(0, length);
  const std::string unit =
      absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(ToAbsl(rest.substr(length))));
  for (const UnitName& known : kUnitNames) {
    if (unit != known.name) continue;
    uint64_t whole = 0;
    if (known.factor == 1 && absl::SimpleAtoi(ToAbsl(number), &whole) &&
        whole < (uint64_t{1} << 63)) {
      return Bytes(whole);
    }
    double value = 0;
    if (number.empty() || !absl::SimpleAtod(ToAbsl(number), &value)) return BadSize(text);
    const double bytes = value * known.factor;
    if (bytes >= 0x1p63 || bytes != std::floor(bytes)) return BadSize(text);
    return Bytes(static_cast<uint64_t>(bytes));
  }
  return BadSize(text);
}

absl::Status NeitherSizeNorGpu(std::string_view text, std::string_view unknown) {
  return absl::InvalidArgumentError(
      !text.empty() && absl::ascii_isalpha(text[0])
          ? StrCat("'", text, "': ", unknown, "; a size is written as 80GiB")
          : StrCat(ToStd(BadSize(text).message()), "; as the name of a GPU: ", unknown));
}

}  // namespace memreplay
