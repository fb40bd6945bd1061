// A strict scanner for JSON objects, made for lines: it splits one object into
// its members without building a tree. Nested values are checked and handed out
// as text, to be scanned when they are needed.
#ifndef MEMREPLAY_TRACE_BYTES_JSON_SCANNER_H_
#define MEMREPLAY_TRACE_BYTES_JSON_SCANNER_H_

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
  bool has_escape = false;  // of a string
  // A string without its quotes, escapes not resolved; all else as it stands.
  std::string_view raw;
};

// A member of the scanned object.
struct JsonMember {
  std::string_view key;  // without quotes, escapes not resolved
  JsonValue value;
  bool used = false;  // for the caller's bookkeeping
};

// Where the text is not JSON, and what was expected there.
struct JsonError {
  size_t offset = 0;     // in the scanned text
  std::string expected;  // "':' after a key"
  std::string found;     // "'}'", "the end of the line"
};

// Nesting allowed inside one value.
inline constexpr int kMaxJsonDepth = 64;

// Splits `text`, which must be exactly one object (array), white space around
// it allowed. `members` (`elements`) is overwritten; views point into `text`,
// which must outlive them.
// Returns the first error, or nothing; what was complete before it is in the
// vector. O(length), no allocation but the vector's.
// Bytes from 0x80 on are passed through unchecked.
std::optional<JsonError> ScanJsonObject(std::string_view text, std::vector<JsonMember>* members);
std::optional<JsonError> ScanJsonArray(std::string_view text, std::vector<JsonValue>* elements);

// Scans the one string that begins with the quote at `*at` of `text` and leaves
// `*at` behind its closing quote.
std::optional<JsonError> ScanJsonString(std::string_view text, size_t* at, JsonValue* value);

// The text of a string value. Lone surrogates become three bytes, as Python's
// "surrogatepass" writes them.
std::string UnescapeJson(std::string_view raw);
// Appends `text` with quotes and escapes; bytes from 0x80 on unchanged.
void AppendJsonString(std::string_view text, std::string* out);

// Integers in full, or nothing: no sign but '-', no fraction, no exponent, no
// overflow.
std::optional<uint64_t> ParseUint64(std::string_view text);
std::optional<int64_t> ParseInt64(std::string_view text);
// Finite decimal numbers in JSON's grammar.
std::optional<double> ParseJsonDouble(std::string_view text);
// The shortest text that reads back as the same number. `value` must be finite.
std::string FormatDouble(double value);
bool IsJsonNumber(std::string_view text);

// How a message shows what was found at `offset` of `text`.
std::string DescribeFound(std::string_view text, size_t offset);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_BYTES_JSON_SCANNER_H_
