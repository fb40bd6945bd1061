#include "trace/bytes/json_scanner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/charconv.h"
#include "absl/strings/str_format.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Returns the length of the JSON number at the start of `text`; 0 if there is none.
size_t NumberLength(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i - begin;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
  } else if (digits() == 0) {
    return 0;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return 0;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return 0;
  }
  return i;
}

// A single pass over a text. Every method returns false after the first error.
class Scanner {
 public:
  explicit Scanner(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  bool OneString(size_t* at, JsonValue* value) {
    value->type = JsonValue::Type::kString;
    if (!String(&value->raw, &value->has_escape, "a string in quotes")) return false;
    *at = at_;
    return true;
  }

  bool Object(std::vector<JsonMember>* members) {
    members->clear();
    SkipSpace();
    return Elements('{',
                    [&] {
                      JsonMember member;
                      if (!Key(&member.key) || !Value(&member.value, 1)) return false;
                      members->push_back(member);
                      return true;
                    }) &&
           AtEnd();
  }

  bool Array(std::vector<JsonValue>* elements) {
    elements->clear();
    SkipSpace();
    return Elements('[',
                    [&] {
                      JsonValue value;
                      if (!Value(&value, 1)) return false;
                      elements->push_back(value);
                      return true;
                    }) &&
           AtEnd();
  }

  std::optional<JsonError> error() && { return std::move(error_); }

 private:
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }

  bool Fail(std::string_view expected) {
    error_ = JsonError{at_, std::string(expected), DescribeFound(text_, at_)};
    return false;
  }

  bool Take(char c, std::string_view expected) {
    if (!At(c)) return Fail(expected);
    ++at_;
    return true;
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size() || Fail("the end of the line");
  }

  bool String(std::string_view* raw, bool* has_escape, std::string_view expected) {
    if (!Take('"', expected)) return false;
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        *raw = text_.substr(begin, at_ - begin);
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return Fail("a control character to be escaped");
      ++at_;
      if (c != '\\') continue;
      *has_escape = true;
      if (at_ == text_.size()) break;
      if (text_[at_] == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          if (at_ >= text_.size() || !std::isxdigit(static_cast<unsigned char>(text_[at_]))) {
            return Fail("four hexadecimal digits after \\u");
          }
        }
      } else if (std::string_view("\"\\/bfnrt").find(text_[at_]) == std::string_view::npos) {
        return Fail("one of \"\\/bfnrtu after a backslash");
      }
      ++at_;
    }
    return Fail("the closing quote of a string");
  }

  bool Word(std::string_view word, JsonValue::Type type, JsonValue* value) {
    if (text_.substr(at_, word.size()) != word) return Fail("a value");
    *value = {type, false, text_.substr(at_, word.size())};
    at_ += word.size();
    return true;
  }

  bool Value(JsonValue* value, int depth) {
    SkipSpace();
    if (at_ == text_.size()) return Fail("a value");
    const size_t begin = at_;
    switch (text_[at_]) {
      case '"':
        value->type = JsonValue::Type::kString;
        return String(&value->raw, &value->has_escape, "a string");
      case 't': return Word("true", JsonValue::Type::kTrue, value);
      case 'f': return Word("false", JsonValue::Type::kFalse, value);
      case 'n': return Word("null", JsonValue::Type::kNull, value);
      case '{':
      case '[': {
        value->type = text_[at_] == '{' ? JsonValue::Type::kObject : JsonValue::Type::kArray;
        if (!Nested(depth)) return false;
        value->raw = text_.substr(begin, at_ - begin);
        return true;
      }
      default: {
        const size_t length = NumberLength(text_.substr(at_));
        if (length == 0) return Fail("a value");
        *value = {JsonValue::Type::kNumber, false, text_.substr(at_, length)};
        at_ += length;
        return true;
      }
    }
  }

  // Reads an object or array from its opening bracket to its closing one; `each` reads a member or
  // an element.
  template <typename Each>
  bool Elements(char open, const Each& each) {
    const bool is_object = open == '{';
    const char close = is_object ? '}' : ']';
    if (!Take(open, is_object ? "'{'" : "'['")) return false;
    SkipSpace();
    if (At(close)) {
      ++at_;
      return true;
    }
    while (true) {
      if (!each()) return false;
      SkipSpace();
      if (!At(',')) break;
      ++at_;
    }
    return Take(close, is_object ? "',' or '}' after a member" : "',' or ']' after an element");
  }

  bool Key(std::string_view* key) {
    bool has_escape = false;
    SkipSpace();
    if (!String(key, &has_escape, "a key in quotes")) return false;
    SkipSpace();
    return Take(':', "':' after a key");
  }

  // Checks one object or array and skips it.
  bool Nested(int depth) {
    if (depth >= kMaxJsonDepth) {
      return Fail(StrCat("at most ", kMaxJsonDepth, " levels of nesting"));
    }
    const bool is_object = text_[at_] == '{';
    return Elements(text_[at_], [&] {
      JsonValue ignored;
      std::string_view key;
      return (!is_object || Key(&key)) && Value(&ignored, depth + 1);
    });
  }

  std::string_view text_;
  size_t at_;
  std::optional<JsonError> error_;
};

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

uint32_t ParseHex4(std::string_view text) {
  uint32_t code = 0;
  std::from_chars(text.data(), text.data() + 4, code, 16);
  return code;
}

template <typename T>
std::optional<T> ParseInteger(std::string_view text) {
  // JSON's grammar allows no leading zeros and no "-0".
  const std::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && (digits.size() > 1 || digits.size() < text.size()))) {
    return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<JsonError> ScanJsonObject(std::string_view text, std::vector<JsonMember>* members) {
  Scanner scanner(text);
  scanner.Object(members);
  return std::move(scanner).error();
}

std::optional<JsonError> ScanJsonArray(std::string_view text, std::vector<JsonValue>* elements) {
  Scanner scanner(text);
  scanner.Array(elements);
  return std::move(scanner).error();
}

std::optional<JsonError> ScanJsonString(std::string_view text, size_t* at, JsonValue* value) {
  Scanner scanner(text, *at);
  *value = {};
  scanner.OneString(at, value);
  return std::move(scanner).error();
}

std::string UnescapeJson(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text.push_back(raw[i]);
      continue;
    }
    switch (raw[++i]) {
      case 'b': text.push_back('\b'); break;
      case 'f': text.push_back('\f'); break;
      case 'n': text.push_back('\n'); break;
      case 'r': text.push_back('\r'); break;
      case 't': text.push_back('\t'); break;
      case 'u': {
        uint32_t code = ParseHex4(raw.substr(i + 1, 4));
        i += 4;
        if (code >= 0xd800 && code < 0xdc00 && raw.substr(i + 1, 2) == "\\u") {
          const uint32_t low = ParseHex4(raw.substr(i + 3, 4));
          if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
          }
        }
        AppendUtf8(code, &text);
        break;
      }
      default: text.push_back(raw[i]);
    }
  }
  return text;
}

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  size_t begin = 0;  // start of the run that needs no escape
  for (size_t i = 0, length = 1; i < text.size(); i += length) {
    const auto c = static_cast<unsigned char>(text[i]);
    length = 1;
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') continue;
    uint32_t point = c;
    if (c >= 0x7f) {
      const size_t character = Utf8Length(text.substr(i));
      length = std::max<size_t>(character, 1);
      if (character == 0) continue;
      point = CodePoint(text.substr(i, length));
      if (!IsControl(point)) continue;
    }
    out->append(text.substr(begin, i - begin));
    begin = i + length;
    switch (c) {
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      default:
        if (point >= 0x10000) {  // as two surrogates
          absl::StrAppendFormat(out, "\\u%04x", 0xd800 + ((point - 0x10000) >> 10));
          point = 0xdc00 + (point & 0x3ff);
        }
        absl::StrAppendFormat(out, "\\u%04x", point);
    }
  }
  out->append(text.substr(begin));
  out->push_back('"');
}

std::optional<uint64_t> ParseUint64(std::string_view text) { return ParseInteger<uint64_t>(text); }
std::optional<int64_t> ParseInt64(std::string_view text) { return ParseInteger<int64_t>(text); }

bool IsJsonNumber(std::string_view text) {
  const size_t length = NumberLength(text);
  return length > 0 && length == text.size();
}

std::optional<double> ParseJsonDouble(std::string_view text) {
  if (!IsJsonNumber(text)) return std::nullopt;
  double value = 0;
  const auto [end, error] = absl::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string FormatDouble(double value) {
#ifdef __cpp_lib_to_chars
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
#else
  // libc++ 14, which the browser page is built with, converts integers only. The text is the same
  // except for some powers of two, whose last digit std::to_chars can sometimes omit.
  std::string scientific;
  int digits = 0;
  do {
    scientific = absl::StrFormat("%.*e", digits++, value);
  } while (digits < 17 && std::strtod(scientific.c_str(), nullptr) != value);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  std::string fixed = absl::StrFormat("%.*f", std::max(0, digits - 1 - exponent), value);
  return fixed.size() <= scientific.size() ? fixed : scientific;
#endif
}

std::string DescribeFound(std::string_view text, size_t offset) {
  if (offset >= text.size()) return "the end of the line";
  const auto c = static_cast<unsigned char>(text[offset]);
  if (c < 0x20 || c >= 0x7f) return absl::StrFormat("byte 0x%02x", c);
  return StrCat("'", text.substr(offset, 1), "'");
}

}  // namespace memreplay
