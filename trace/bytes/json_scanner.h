// A strict scanner for JSON objects on single lines. It splits an object into its members without
// building a tree. Nested values are validated and returned as text, to be scanned on demand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// A value in the scanned text.
struct JsonValue {
  enum class Type : uint8_t { kString, kNumber, kTrue, kFalse, kNull, kObject, kArray };
  Type type = Type::kNull;
  bool has_escape = false;  // for strings
  // The text of a string without its quotes and with its escapes; the text of any other value.
  std::string_view raw;

  // Returns the value as it is written: `raw`, which is between quotes in the scanned text if it is
  // a string.
  std::string_view text() const {
    return type == Type::kString ? std::string_view(raw.data() - 1, raw.size() + 2) : raw;
  }
};

// A member of a scanned object.
struct JsonMember {
  std::string_view key;  // without quotes, with its escapes
  JsonValue value;
  bool used = false;  // for the caller's bookkeeping
};

// A place where the text is not JSON, and what was expected there.
struct JsonError {
  size_t offset = 0;     // in the scanned text
  std::string expected;  // "':' after a key"
  std::string found;     // "'}'", "the end of the line"
};

// The maximum nesting inside one value.
inline constexpr int kMaxJsonDepth = 64;

// Splits `text`, which must be exactly one object (array) with optional white space around it.
// Overwrites `members` (`elements`), whose views point into `text`, which must outlive them.
// Returns the first error, if any; the vector then has the complete members before it. O(length);
// allocates only the vector. Bytes from 0x80 on are not checked.
std::optional<JsonError> ScanJsonObject(std::string_view text, std::vector<JsonMember>* members);
std::optional<JsonError> ScanJsonArray(std::string_view text, std::vector<JsonValue>* elements);

// Scans the string that begins with the quote at `*at` of `text` and moves `*at` behind its closing
// quote.
std::optional<JsonError> ScanJsonString(std::string_view text, size_t* at, JsonValue* value);

// Returns the text of a string value. Lone surrogates become three bytes, as with Python's
// "surrogatepass".
std::string UnescapeJson(std::string_view raw);
// Appends `text` with quotes. Control characters are escaped (IsControl()); bytes that belong to no
// character are unchanged.
void AppendJsonString(std::string_view text, std::string* out);

// Parse an integer that is the whole text: no sign except '-', no fraction, no exponent, no
// overflow.
std::optional<uint64_t> ParseUint64(std::string_view text);
std::optional<int64_t> ParseInt64(std::string_view text);
// Parses a finite decimal number in JSON's grammar.
std::optional<double> ParseJsonDouble(std::string_view text);
// Returns the shortest text that reads back as the same number. `value` must be finite.
std::string FormatDouble(double value);
bool IsJsonNumber(std::string_view text);

// Describes what is at `offset` of `text`, for messages.
std::string DescribeFound(std::string_view text, size_t offset);

}  // namespace memreplay
