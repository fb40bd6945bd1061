#include "trace/bytes/json_reader.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;

constexpr size_t kMaxNumberLength = 1024;
constexpr size_t kWindow = 4096;

class JsonReader {
 public:
  JsonReader(ByteSource& source, ValueHeap& heap, DictReducer& reducer)
      : source_(source), heap_(heap), reducer_(reducer) {}

  absl::StatusOr<Value> Run() {
    Accept("\xef\xbb\xbf");  // a byte order mark
    for (;;) {
      // A value begins here.
      const char first = Next();
      absl::Status status;
      if (source_.position() >= next_memory_check_) {
        status = CheckMemory(source_.position(), stack_.capacity() * sizeof(Value) +
                                                     heap_.MemoryUse() + reducer_.MemoryUse());
        if (!status.ok()) return status;
        next_memory_check_ = source_.position() + kMemoryCheckStep;
      }
      bool complete = true;
      if (first == '{' || first == '[') {
        if (open_.size() >= kMaxSnapshotJsonDepth) return Error("less nesting");
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
      // A value is followed by the end of containers, or by a comma and the next value.
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
    RETURN_IF_ERROR(source_.status());
    return stack_.back();
  }

 private:
  struct Open {
    size_t first;  // size of the stack below its elements
    bool is_object;
  };

  absl::Status Error(std::string_view expected) {
    RETURN_IF_ERROR(source_.status());
    const std::string_view found = source_.Peek(16).substr(0, 16);
    return absl::InvalidArgumentError(
        StrCat("byte ", source_.position(), ": expected ", expected, ", found ",
               found.empty() ? std::string("the end of the text")
                             : StrCat("\"", absl::CHexEscape(ToAbsl(found)), "\"")));
  }
  // Returns the next character that is not white space, without consuming it; 0 at the end.
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
  void PushFloat(double number) {
    stack_.push_back(heap_.NewWide(Kind::kFloat, absl::bit_cast<uint64_t>(number)));
  }

  absl::Status ReadScalar(char first) {
    if (first == '"') return ReadString();
    for (const auto& [word, kind] :
         {std::pair("null", Kind::kNone), {"true", Kind::kTrue}, {"false", Kind::kFalse}}) {
      if (!Accept(word)) continue;
      stack_.push_back(Value(kind));
      return absl::OkStatus();
    }
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const auto& [word, number] :
         {std::pair("NaN", std::nan("")), {"Infinity", kInfinity}, {"-Infinity", -kInfinity}}) {
      if (!Accept(word)) continue;
      PushFloat(number);
      return absl::OkStatus();
    }
    return ReadNumber();
  }

  absl::Status ReadString() {
    bool escaped = false;
    size_t end = 1;
    std::string_view text = source_.Peek(kWindow);
    for (;; ++end) {
      while (end >= text.size()) {
        const size_t before = text.size();
        if (before <= kMaxSnapshotJsonString) text = source_.Peek(2 * before + 1);
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
      size_t at = 0;
      JsonValue value;
      if (ScanJsonString(text.substr(0, end + 1), &at, &value).has_value()) {
        return Error("a text with valid escapes");
      }
      unescaped_ = UnescapeJson(value.raw);
      content = unescaped_;
    }
    stack_.push_back(heap_.NewString(content));
    source_.Skip(end + 1);
    return absl::OkStatus();
  }

  absl::Status ReadNumber() {
    std::string_view text = source_.Peek(kMaxNumberLength + 1).substr(0, kMaxNumberLength + 1);
    text = text.substr(0, text.find_first_not_of("0123456789+-.eE"));
    const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
    if (text.size() > kMaxNumberLength || digits.empty() || digits[0] < '0' || digits[0] > '9' ||
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
      PushFloat(number);
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

  // Reads a key and its colon.
  absl::Status ReadKey() {
    if (Next() != '"') return Error("a key in quotes");
    RETURN_IF_ERROR(ReadString());
    if (Next() != ':') return Error("':'");
    source_.Skip(1);
    return absl::OkStatus();
  }

  // Turns the innermost open container into a value.
  absl::Status Close() {
    const Open open = open_.back();
    open_.pop_back();
    if (heap_.is_full()) return Error("fewer containers");
    const uint64_t position = source_.position();
    Value object =
        heap_.NewObject(open.is_object ? ValueHeap::Type::kDict : ValueHeap::Type::kList, position);
    const absl::Span<Value> items = absl::MakeSpan(stack_).subspan(open.first);
    if (open.is_object) {
      RETURN_IF_ERROR(reducer_.AddItems(heap_, &object, items, position));
    } else {
      heap_.Extend(object, items, position);
    }
    stack_.resize(open.first);
    stack_.push_back(object);
    source_.Skip(1);
    return absl::OkStatus();
  }

  ByteSource& source_;
  ValueHeap& heap_;
  DictReducer& reducer_;
  std::vector<Value> stack_;
  std::vector<Open> open_;
  std::string unescaped_;
  uint64_t next_memory_check_ = kMemoryCheckStep;
};

}  // namespace

absl::StatusOr<Value> ReadJson(ByteSource& source, ValueHeap& heap, DictReducer& reducer) {
  return JsonReader(source, heap, reducer).Run();
}

}  // namespace memreplay
