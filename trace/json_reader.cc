#include "trace/json_reader.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "trace/strings.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;

constexpr size_t kLongestNumber = 1024;
constexpr size_t kWindow = 4096;

void AppendUtf8(uint32_t code, std::string* text) {
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text->push_back(static_cast<char>(0xc0 | code >> 6));
    text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else if (code < 0x10000) {
    text->push_back(static_cast<char>(0xe0 | code >> 12));
    text->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else {
    text->push_back(static_cast<char>(0xf0 | code >> 18));
    text->push_back(static_cast<char>(0x80 | (code >> 12 & 0x3f)));
    text->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    text->push_back(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

bool Hex4(std::string_view digits, uint32_t* code) {
  *code = 0;
  if (digits.size() < 4) return false;
  for (const char c : digits.substr(0, 4)) {
    const int digit = c >= '0' && c <= '9'                 ? c - '0'
                      : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                           : -1;
    if (digit < 0) return false;
    *code = *code << 4 | static_cast<uint32_t>(digit);
  }
  return true;
}

class JsonReader {
 public:
  JsonReader(ByteSource& source, ValueHeap& heap, DictReducer& reducer)
      : source_(source), heap_(heap), reducer_(reducer) {}

  absl::StatusOr<Value> Run();

 private:
  struct Open {
    size_t first;  // height of the stack below its elements
    bool is_object;
  };

  absl::Status Error(std::string_view expected) {
    if (!source_.status().ok()) return source_.status();
    const std::string_view found = source_.Peek(16).substr(0, 16);
    return absl::InvalidArgumentError(
        StrCat("byte ", source_.position(), ": expected ", expected, ", found ",
               found.empty() ? std::string("the end of the text")
                             : StrCat("\"", absl::CHexEscape(ToAbsl(found)), "\"")));
  }
  // The next character that is no white space; 0 at the end. Not consumed.
  char Next() {
    for (;;) {
      const std::string_view text = source_.Peek(1);
      const size_t first = text.find_first_not_of(" \t\r\n");
      if (first != std::string_view::npos) {
        source_.Skip(first);
        return text[first];
      }
      if (text.empty()) return 0;
      source_.Skip(text.size());
    }
  }
  bool Accept(std::string_view literal) {
    if (!source_.Peek(literal.size()).starts_with(literal)) return false;
    source_.Skip(literal.size());
    return true;
  }
  absl::Status ReadScalar(char first);
  absl::Status ReadString();
  absl::Status ReadNumber();
  absl::Status Unescape(std::string_view text);
  absl::Status ReadKey();
  absl::Status Close();

  ByteSource& source_;
  ValueHeap& heap_;
  DictReducer& reducer_;
  std::vector<Value> stack_;
  std::vector<Open> open_;
  std::string unescaped_;
};

// Decodes escapes of `text` (without quotes) into unescaped_.
absl::Status JsonReader::Unescape(std::string_view text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
  unescaped_.clear();
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      unescaped_.push_back(text[i++]);
      continue;
    }
    const char letter = text[i + 1];  // a text never ends with a lone backslash
    i += 2;
    if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
      unescaped_.push_back(kMeaning[at]);
      continue;
    }
    uint32_t code = 0, low = 0;
    if (letter != 'u' || !Hex4(text.substr(i), &code)) return Error("a text with valid escapes");
    i += 4;
    if (code >= 0xd800 && code < 0xdc00 && text.substr(i).starts_with("\\u") &&
        Hex4(text.substr(i + 2), &low) && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    }
    AppendUtf8(code, &unescaped_);
  }
  return absl::OkStatus();
}

absl::Status JsonReader::ReadString() {
  bool escaped = false;
  size_t end = 1;
  std::string_view text = source_.Peek(kWindow);
  for (;; ++end) {
    while (end >= text.size()) {
      const size_t before = text.size();
      if (before <= kMaxJsonString) text = source_.Peek(2 * before + 1);
      if (text.size() <= before) return Error("a text with an end");
    }
    const char c = text[end];
    if (c == '"') break;
    if (static_cast<uint8_t>(c) < 0x20) return Error("a text without control characters");
    if (c != '\\') continue;
    escaped = true;
    ++end;
  }
  std::string_view content = text.substr(1, end - 1);
  if (escaped) {
    const absl::Status status = Unescape(content);
    if (!status.ok()) return status;
    content = unescaped_;
  }
  stack_.push_back(Value(Kind::kString, heap_.strings().Intern(content)));
  source_.Skip(end + 1);
  return absl::OkStatus();
}

absl::Status JsonReader::ReadNumber() {
  std::string_view text = source_.Peek(kLongestNumber + 1).substr(0, kLongestNumber + 1);
  text = text.substr(0, text.find_first_not_of("0123456789+-.eE"));
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (text.size() > kLongestNumber || digits.empty() || digits[0] < '0' || digits[0] > '9' ||
      (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')) {
    return Error("a value");
  }
  int64_t integer = 0;
  uint64_t natural = 0;
  if (text.find_first_of(".eE") != std::string_view::npos) {
    double number = 0;
    const absl::from_chars_result result =
        absl::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ptr != text.data() + text.size()) return Error("a number");
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    stack_.push_back(heap_.NewWide(Kind::kFloat, bits));
  } else if (digits.find_first_of("+-") != std::string_view::npos) {
    return Error("a number");
  } else if (absl::SimpleAtoi(ToAbsl(text), &integer)) {
    stack_.push_back(
        Value::FitsInline(integer)
            ? Value::Int(integer)
            : heap_.NewWide(Kind::kWideInt, static_cast<uint64_t>(integer), integer < 0));
  } else if (absl::SimpleAtoi(ToAbsl(text), &natural)) {
    stack_.push_back(heap_.NewWide(Kind::kWideInt, natural));
  } else {
    stack_.push_back(Value(Kind::kHugeInt));
  }
  source_.Skip(text.size());
  return absl::OkStatus();
}

absl::Status JsonReader::ReadScalar(char first) {
  const auto push_float = [&](double number) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    stack_.push_back(heap_.NewWide(Kind::kFloat, bits));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (first == '"') return ReadString();
  if (Accept("null")) {
    stack_.push_back(Value(Kind::kNone));
  } else if (Accept("true")) {
    stack_.push_back(Value(Kind::kTrue));
  } else if (Accept("false")) {
    stack_.push_back(Value(Kind::kFalse));
  } else if (Accept("NaN")) {
    push_float(std::nan(""));
  } else if (Accept("Infinity")) {
    push_float(kInfinity);
  } else if (Accept("-Infinity")) {
    push_float(-kInfinity);
  } else {
    return ReadNumber();
  }
  return absl::OkStatus();
}

// A key and its colon.
absl::Status JsonReader::ReadKey() {
  if (Next() != '"') return Error("a key in quotes");
  const absl::Status status = ReadString();
  if (!status.ok()) return status;
  if (Next() != ':') return Error("':'");
  source_.Skip(1);
  return absl::OkStatus();
}

// The innermost open container becomes a value.
absl::Status JsonReader::Close() {
  const Open open = open_.back();
  open_.pop_back();
  if (heap_.is_full()) return Error("fewer containers");
  const uint64_t position = source_.position();
  Value object =
      heap_.NewObject(open.is_object ? ValueHeap::Type::kDict : ValueHeap::Type::kList, position);
  const absl::Span<Value> items = absl::MakeSpan(stack_).subspan(open.first);
  if (open.is_object) {
    const absl::Status status = reducer_.AddItems(heap_, &object, items, position);
    if (!status.ok()) return status;
  } else {
    heap_.Extend(object, items, position);
  }
  stack_.resize(open.first);
  stack_.push_back(object);
  source_.Skip(1);
  return absl::OkStatus();
}

absl::StatusOr<Value> JsonReader::Run() {
  Accept("\xef\xbb\xbf");  // a byte order mark
  for (;;) {
    // A value begins here.
    const char first = Next();
    absl::Status status;
    bool complete = true;
    if (first == '{' || first == '[') {
      if (open_.size() >= kMaxJsonDepth) return Error("less nesting");
      open_.push_back({stack_.size(), first == '{'});
      source_.Skip(1);
      complete = Next() == (first == '{' ? '}' : ']');
      if (complete) {
        status = Close();
      } else if (first == '{') {
        status = ReadKey();
      }
    } else {
      status = ReadScalar(first);
    }
    if (!status.ok()) return status;
    // After a value: the end of containers, or a comma and the next one.
    while (complete && !open_.empty()) {
      const bool is_object = open_.back().is_object;
      const char next = Next();
      if (next == (is_object ? '}' : ']')) {
        status = Close();
      } else if (next == ',') {
        source_.Skip(1);
        if (is_object) status = ReadKey();
        complete = false;
      } else {
        return Error(is_object ? "',' or '}'" : "',' or ']'");
      }
      if (!status.ok()) return status;
    }
    if (complete) break;
  }
  if (Next() != 0) return Error("the end of the text");
  if (!source_.status().ok()) return source_.status();
  return stack_.back();
}

}  // namespace

absl::StatusOr<Value> ReadJson(ByteSource& source, ValueHeap& heap, DictReducer& reducer) {
  return JsonReader(source, heap, reducer).Run();
}

}  // namespace memreplay
