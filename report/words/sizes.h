// The only formatter and the only parser of sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "trace/value/units.h"

namespace memreplay {

// Returns a size in binary units with three or four significant digits, never more precise than the
// number: "512 B", "1.50 KiB", "20.0 MiB", "79.3 GiB", "1023 KiB". Negative numbers keep their
// sign.
std::string FormatSize(int64_t bytes);
inline std::string FormatSize(Bytes size) { return FormatSize(size.signed_value()); }

// Returns the size with the exact number: "20.0 MiB (20,971,520 bytes)".
std::string FormatSizeExactly(int64_t bytes);

// Returns a change with its sign: "+1.50 GiB", "-20.0 MiB", "0 B".
std::string FormatSizeChange(int64_t bytes);

// Returns a number with thousands separators: "1,000,647".
std::string FormatCount(int64_t count);
// Returns a value of a script's argument: "8", "1048576", "0.95". At most 15 digits.
std::string FormatValue(double value);
// Returns "1 event" or "12 events": the noun gets an s unless the count is one.
std::string FormatCount(int64_t count, std::string_view noun);

// Returns "812 ns", "1.5 us", "12.25 ms" or "3.00 s". `nanoseconds` is not negative.
std::string FormatDuration(int64_t nanoseconds);

// Returns "all 12" or "11 of 12".
std::string FormatPart(int64_t part, int64_t whole);

// Parses "80GiB", "80 GiB", "1.5GiB" (binary), "12GB" (decimal), "80G", "80Gi" (binary, as PyTorch
// reads them) and plain bytes; case does not matter. The result must be a whole number of bytes
// below 2^63. Error: InvalidArgument naming the text and what is accepted.
absl::StatusOr<Bytes> ParseSize(std::string_view text);

// Returns the error of a text that is neither a size nor the name of a GPU; `unknown` says why it
// is no name. What begins with a letter was meant to be one.
absl::Status NeitherSizeNorGpu(std::string_view text, std::string_view unknown);

}  // namespace memreplay
