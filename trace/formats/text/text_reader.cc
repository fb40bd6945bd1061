#include <charconv>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "trace/bytes/json_scanner.h"
#include "trace/formats/text/text_format.h"
#include "trace/formats/text/text_names.h"
#include "trace/value/layout_fields.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

constexpr size_t kMaxLine = size_t{64} << 20;

// "word", "value" or "key=value".
struct Token {
  std::string_view key;    // empty if there is no '='
  std::string_view value;  // escapes resolved
  size_t at = 0;           // of the value, in the line
  bool used = false;
};

// Decimal, or hexadecimal after 0x; all of `text`.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  const bool is_hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (is_hex) text.remove_prefix(2);
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, is_hex ? 16 : 10);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// "a,b" or "a:b".
std::optional<std::pair<uint64_t, uint64_t>> ParsePair(std::string_view text, char separator) {
  const size_t middle = text.find(separator);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto first = ParseNumber(text.substr(0, middle));
  const auto second = ParseNumber(text.substr(middle + 1));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

class TextReader {
 public:
  explicit TextReader(ByteSource& source) : source_(source), builder_("text") {}

  absl::StatusOr<Trace> Read() {
    while (true) {
      line_begin_ = source_.position();
      if (!source_.ReadLine(&line_, kMaxLine)) break;
      ++line_number_;
      if (!Line()) return std::move(error_);
    }
    if (!source_.status().ok()) return source_.status();
    if (!has_magic_) {
      ++line_number_;
      line_ = "";
      FailAt(0, StrCat("'", kTextMagic, " ", kTextVersion, "'"), "the end of the file");
      return std::move(error_);
    }
    return std::move(builder_).Finish();
  }

 private:
  // All below return false after an error, which is then in error_.

  bool FailAt(size_t at, std::string_view expected, std::string_view found) {
    error_ = absl::InvalidArgumentError(StrCat("line ", line_number_, ", byte ", line_begin_ + at,
                                               ": expected ", expected, ", found ", found));
    return false;
  }
  bool Fail(const Token& token, std::string_view expected) {
    const std::string_view shown = token.value.substr(0, 40);
    const std::string_view more = shown.size() < token.value.size() ? "..." : "";
    return FailAt(token.at,
                  token.key.empty() ? std::string(expected) : StrCat(expected, " for ", token.key),
                  StrCat("'", shown, "'", more));
  }
  bool Missing(std::string_view what) { return FailAt(line_.size(), what, "the end of the line"); }

  bool Tokenize();
  // The token with this key, marked as used; null if there is none.
  Token* Find(std::string_view key) {
    for (Token& token : tokens_) {
      if (!token.used && !token.key.empty() && token.key == key) {
        token.used = true;
        return &token;
      }
    }
    return nullptr;
  }
  // The next unused token without a key.
  Token* Word() {
    for (Token& token : tokens_) {
      if (!token.used && token.key.empty()) {
        token.used = true;
        return &token;
      }
    }
    return nullptr;
  }
  bool Number(const Token& token, uint64_t* value, uint64_t limit = ~uint64_t{0}) {
    const auto parsed = ParseNumber(token.value);
    if (parsed && *parsed <= limit) {
      *value = *parsed;
      return true;
    }
    return Fail(token, StrCat("an integer from 0 to ", limit));
  }
  bool Signed(const Token& token, int64_t* value) {
    const auto parsed = ParseInt64(token.value);
    if (!parsed) return Fail(token, "a 64-bit integer");
    *value = *parsed;
    return true;
  }
  bool Flag(const Token& token, bool* value) {
    if (token.value != "true" && token.value != "false") return Fail(token, "true or false");
    *value = token.value == "true";
    return true;
  }
  bool Real(const Token& token, double* value) {
    const auto parsed = ParseJsonDouble(token.value);
    if (!parsed) return Fail(token, "a number");
    *value = *parsed;
    return true;
  }
  // An optional number under a key; leaves `value` alone if absent.
  bool NumberOf(std::string_view key, uint64_t* value, uint64_t limit = ~uint64_t{0}) {
    const Token* token = Find(key);
    return token == nullptr || Number(*token, value, limit);
  }
  bool IdOf(AllocationId* id) {
    uint64_t number = *id;
    const Token* token = Find("id");
    if (token != nullptr && !Number(*token, &number, kNoAllocation - 1)) return false;
    *id = static_cast<AllocationId>(number);
    return true;
  }
  bool StackOf(uint32_t* stack) {
    uint64_t number = 0;
    const Token* token = Find("stack");
    if (token == nullptr) return true;
    if (!Number(*token, &number)) return false;
    if (number >= stacks_.size()) return Fail(*token, "a stack defined on a line before");
    *stack = stacks_[number];
    return true;
  }
  bool PoolOf(PoolId* pool) {
    const Token* token = Find("pool");
    if (token == nullptr) return true;
    const auto pair = ParsePair(token->value, ',');
    if (!pair) return Fail(*token, "a pair of integers 'a,b'");
    *pool = {pair->first, pair->second};
    return true;
  }
  bool AddressOf(Address* address) {
    const Token* token = Word();
    if (token == nullptr) return true;
    std::string_view text = token->value;
    if (!text.empty() && text[0] == '#') text.remove_prefix(1);
    const auto number = ParseNumber(text);
    if (!number) return Fail(*token, "an address '0x...' or a handle '#...'");
    *address = Address(*number);
    return true;
  }
  bool Done() {
    for (const Token& token : tokens_) {
      if (token.used) continue;
      const size_t back = token.key.empty() ? 0 : token.key.size() + 1;
      return FailAt(token.at - std::min(token.at, back), "nothing more on the line",
                    token.key.empty() ? StrCat("'", token.value.substr(0, 40), "'")
                                      : StrCat("'", token.key.substr(0, 40), "='"));
    }
    return true;
  }

  bool Line();
  bool HeaderLine(std::string_view word, bool* known);
  bool Conf();
  bool EventLine(EventKind kind);
  bool FrameLine();
  bool StackLine();
  bool DeviceLine();
  bool SegmentLine();
  bool BlockLine();
  bool AnnotationLine();
  bool DiagnosticLine();

  ByteSource& source_;
  TraceBuilder builder_;
  absl::Status error_;
  uint64_t line_begin_ = 0;
  uint64_t line_number_ = 0;
  std::string_view line_;
  std::vector<Token> tokens_;
  std::deque<std::string> held_;  // texts of tokens that had escapes
  bool has_magic_ = false;
  int device_ = 0;
  bool has_segment_ = false;  // of device_
  std::vector<uint32_t> frames_ = {0};
  std::vector<uint32_t> stacks_ = {kNoStack};
};

bool TextReader::Tokenize() {
  tokens_.clear();
  held_.clear();
  size_t at = 0;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (true) {
    while (at < line_.size() && is_blank(line_[at])) ++at;
    if (at == line_.size() || (tokens_.empty() && line_[at] == '#')) return true;
    Token token;
    const size_t begin = at;
    while (at < line_.size() && !is_blank(line_[at]) && line_[at] != '"' && line_[at] != '=') ++at;
    std::string_view word = line_.substr(begin, at - begin);
    token.at = begin;
    if (at < line_.size() && line_[at] == '=') {
      if (word.empty()) return FailAt(at, "a key before '='", "none");
      token.key = word;
      token.at = ++at;
      const size_t value_begin = at;
      while (at < line_.size() && !is_blank(line_[at]) && line_[at] != '"') ++at;
      word = line_.substr(value_begin, at - value_begin);
    }
    token.value = word;
    if (at < line_.size() && line_[at] == '"') {
      if (!word.empty()) return FailAt(at, "a space before a quote", "none");
      JsonValue value;
      token.at = at;
      if (const auto error = ScanJsonString(line_, &at, &value)) {
        return FailAt(error->offset, error->expected, error->found);
      }
      token.value = value.raw;
      if (value.has_escape) {
        held_.push_back(UnescapeJson(value.raw));
        token.value = held_.back();
      }
      if (at < line_.size() && !is_blank(line_[at])) {
        return FailAt(at, "a space after a quote", DescribeFound(line_, at));
      }
    } else if (!token.key.empty() && word.empty()) {
      return FailAt(at, "a value after '='", DescribeFound(line_, at));
    }
    tokens_.push_back(token);
  }
}

bool TextReader::Line() {
  if (!Tokenize()) return false;
  if (tokens_.empty()) return true;
  Token* first = &tokens_[0];
  first->used = true;
  if (!first->key.empty()) return FailAt(0, "a word at the begin of the line", "a key");
  const std::string_view word = first->value;
  if (!has_magic_) {
    if (word != kTextMagic) return Fail(*first, StrCat("'", kTextMagic, "'"));
    const Token* version = Word();
    if (version == nullptr) return Missing("a version");
    if (version->value != StrCat(kTextVersion)) {
      return Fail(*version, StrCat("version ", kTextVersion));
    }
    has_magic_ = true;
    return Done();
  }
  // "free" is what people write.
  const auto kind = word == "free" ? EventKind::kFree : EventKindFromName(word);
  if (kind) return EventLine(*kind) && Done();
  bool known = true;
  if (!HeaderLine(word, &known)) return false;
  if (!known) return Fail(*first, "an action or another first word of docs/formats.md");
  return Done();
}

bool TextReader::HeaderLine(std::string_view word, bool* known) {
  Trace& trace = builder_.trace();
  if (word == "frame") return FrameLine();
  if (word == "stack") return StackLine();
  if (word == "segment") return SegmentLine();
  if (word == "block") return BlockLine();
  if (word == "device") return DeviceLine();
  if (word == "annotation") return AnnotationLine();
  if (word == "diagnostic") return DiagnosticLine();
  if (word == "conf") return Conf();
  uint64_t number = 0;
  if (word == "program") {
    trace.is_program = true;
  } else if (word == "program_header") {
    const Token* json = Find("json");
    if (json == nullptr) return Missing("json=");
    trace.program_header = std::string(json->value);
  } else if (word == "streams") {
    while (const Token* token = Word()) {
      if (!Number(*token, &number)) return false;
      if (builder_.StreamNumber(StreamHandle(number)) == TraceBuilder::kNoStream) {
        return Fail(*token, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
      }
    }
  } else if (word == "pools") {
    while (const Token* token = Word()) {
      const auto pair = ParsePair(token->value, ',');
      if (!pair) return Fail(*token, "a pair of integers 'a,b'");
      if (!builder_.PoolIndex({pair->first, pair->second})) {
        return Fail(*token, "at most 65536 pools");
      }
    }
  } else if (word == "layout") {
    while (const Token* token = Word()) {
      bool is_fact = false;
      for (const LayoutField& field : kLayoutFields) {
        if (field.name != token->value) continue;
        trace.layout.*field.field = true;
        is_fact = true;
      }
      if (!is_fact) return Fail(*token, "a fact of the layout");
    }
  } else if (word == "pickle_protocol" || word == "total" || word == "fraction" ||
             word == "completion") {
    const Token* token = Word();
    if (token == nullptr) return Missing("a value");
    if (word == "pickle_protocol") {
      if (!Number(*token, &number, 255)) return false;
      trace.layout.pickle_protocol = static_cast<int>(number);
    } else if (word == "total") {
      if (!Number(*token, &number)) return false;
      trace.total_memory = Bytes(number);
    } else if (word == "fraction") {
      return Real(*token, &trace.memory_fraction.emplace());
    } else if (token->value == "explicit" || token->value == "at_once") {
      trace.completion = token->value == "explicit" ? Completion::kExplicit : Completion::kAtOnce;
    } else {
      return Fail(*token, "at_once or explicit");
    }
  } else {
    *known = false;
  }
  return true;
}

bool TextReader::Conf() {
  Trace& trace = builder_.trace();
  RecordedSettings& settings = trace.settings.emplace();
  if (const Token* token = Find("text")) settings.conf = std::string(token->value);
  if (const Token* token = Find("max_split_size")) {
    if (!Signed(*token, &settings.max_split_size.emplace())) return false;
  }
  if (const Token* token = Find("garbage_collection_threshold")) {
    if (!Real(*token, &settings.garbage_collection_threshold.emplace())) return false;
  }
  if (const Token* token = Find("expandable_segments")) {
    if (!Flag(*token, &settings.expandable_segments.emplace())) return false;
  }
  if (const Token* token = Find("graph_capture_record_stream_reuse")) {
    if (!Flag(*token, &settings.graph_capture_record_stream_reuse.emplace())) return false;
  }
  if (const Token* token = Find("roundup_power2_divisions")) {
    std::string_view rest = token->value;
    while (true) {
      const size_t comma = rest.find(',');
      const auto pair = ParsePair(rest.substr(0, comma), ':');
      if (!pair) return Fail(*token, "pairs 'size:divisions' with commas between");
      settings.roundup_power2_divisions.push_back(*pair);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return true;
}

bool TextReader::EventLine(EventKind kind) {
  Trace& trace = builder_.trace();
  Event event;
  event.kind = kind;
  event.stream = TraceBuilder::kNoStream;
  uint64_t number = 0;
  if (!AddressOf(&event.address)) return false;
  if (kind == EventKind::kMark) {
    if (const Token* token = Find("kind")) {
      size_t i = 0;
      while (i < std::size(kMarkKindNames) && kMarkKindNames[i] != token->value) ++i;
      number = i;
      if (i == std::size(kMarkKindNames) && !Number(*token, &number)) {
        return Fail(*token, "a kind of mark");
      }
    }
  } else if (!NumberOf(kind == EventKind::kFailNext ? "count" : "size", &number)) {
    return false;
  }
  event.size = Bytes(number);
  number = 0;
  if (!NumberOf("block", &number)) return false;
  event.block_size = Bytes(number);
  if (const Token* token = Find("stream")) {
    if (!Number(*token, &number)) return false;
    event.stream = builder_.StreamNumber(StreamHandle(number));
    if (event.stream == TraceBuilder::kNoStream) {
      return Fail(*token, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
    }
  } else if (NamesStream(event)) {
    event.stream = builder_.StreamNumber(StreamHandle(0));
  }
  PoolId pool;
  if (!PoolOf(&pool) || !IdOf(&event.id)) return false;
  const std::optional<uint16_t> index = builder_.PoolIndex(pool);
  if (!index) return FailAt(0, "at most 65536 pools", "another");
  event.pool = *index;
  if (HasText(kind)) {
    if (const Token* token = Find("text")) event.text_or_stack = trace.strings.Intern(token->value);
  } else {
    const Token* tag = Find("tag");
    const Token* name = Find("name");
    if (tag != nullptr || name != nullptr) {
      const uint32_t frame = trace.stacks.InternFrame(
          {tag == nullptr ? kNoText : trace.strings.Intern(tag->value),
           name == nullptr ? kNoText : trace.strings.Intern(name->value), 0});
      event.text_or_stack = trace.stacks.InternStack(absl::MakeConstSpan(&frame, 1));
    } else if (!StackOf(&event.text_or_stack)) {
      return false;
    }
  }
  if (const Token* token = Find("time")) {
    int64_t time = 0;
    if (!Signed(*token, &time)) return false;
    builder_.AddAt(device_, event, time);
  } else {
    builder_.Add(device_, event);
  }
  return true;
}

bool TextReader::FrameLine() {
  Trace& trace = builder_.trace();
  uint64_t number = 0;
  uint64_t line = 0;
  const Token* which = Word();
  if (which == nullptr) return Missing(StrCat(frames_.size()));
  if (!Number(*which, &number)) return false;
  if (number != frames_.size()) return Fail(*which, StrCat(frames_.size()));
  const Token* file = Find("file");
  const Token* name = Find("name");
  if (!NumberOf("line", &line, 0xffffffff)) return false;
  frames_.push_back(
      trace.stacks.InternFrame({file == nullptr ? kNoText : trace.strings.Intern(file->value),
                                name == nullptr ? kNoText : trace.strings.Intern(name->value),
                                static_cast<uint32_t>(line)}));
  return true;
}

bool TextReader::StackLine() {
  uint64_t number = 0;
  const Token* which = Word();
  if (which == nullptr) return Missing(StrCat(stacks_.size()));
  if (!Number(*which, &number)) return false;
  if (number != stacks_.size()) return Fail(*which, StrCat(stacks_.size()));
  std::vector<uint32_t> frames;
  for (Token& token : tokens_) {
    if (token.used || !token.key.empty()) continue;
    token.used = true;
    if (!Number(token, &number)) return false;
    if (number == 0 || number >= frames_.size()) {
      return Fail(token, "a frame defined on a line before");
    }
    frames.push_back(frames_[number]);
  }
  stacks_.push_back(builder_.trace().stacks.InternStack(frames));
  return true;
}

bool TextReader::DeviceLine() {
  uint64_t number = 0;
  const Token* which = Word();
  if (which == nullptr) return Missing("a device");
  if (!Number(*which, &number, 0x7fffffff)) return false;
  device_ = static_cast<int>(number);
  DeviceTrace& device = builder_.Device(device_);
  has_segment_ = !device.final_state.empty();
  if (const Token* final = Word()) {
    if (final->value != "final") return Fail(*final, "'final' or the end of the line");
    device.has_final_state = true;
  }
  return true;
}

bool TextReader::SegmentLine() {
  SegmentInfo segment;
  uint64_t size = 0;
  uint64_t stream = 0;
  if (!AddressOf(&segment.address) || !NumberOf("size", &size) || !NumberOf("stream", &stream) ||
      !PoolOf(&segment.pool_id) || !StackOf(&segment.stack)) {
    return false;
  }
  segment.total_size = Bytes(size);
  segment.stream = StreamHandle(stream);
  while (const Token* token = Word()) {
    if (token->value == "large") {
      segment.is_large = true;
    } else if (token->value == "expandable") {
      segment.is_expandable = true;
    } else if (token->value != "small") {
      return Fail(*token, "small, large or expandable");
    }
  }
  DeviceTrace& device = builder_.Device(device_);
  device.has_final_state = true;
  device.final_state.push_back(std::move(segment));
  has_segment_ = true;
  return true;
}

bool TextReader::BlockLine() {
  if (!has_segment_) return FailAt(0, "a segment before its blocks", "none");
  BlockInfo block;
  uint64_t size = 0;
  uint64_t requested = 0;
  if (!AddressOf(&block.address) || !NumberOf("size", &size) ||
      !NumberOf("requested", &requested) || !IdOf(&block.id) || !StackOf(&block.stack)) {
    return false;
  }
  block.size = Bytes(size);
  block.requested_size = Bytes(requested);
  if (const Token* state = Find("state")) {
    const std::optional<BlockState> named = BlockStateFromName(state->value);
    if (!named) return Fail(*state, "a state of a block");
    block.state = *named;
  }
  builder_.Device(device_).final_state.back().blocks.push_back(block);
  return true;
}

bool TextReader::AnnotationLine() {
  Trace& trace = builder_.trace();
  Annotation annotation;
  if (const Token* token = Find("name")) annotation.name = trace.strings.Intern(token->value);
  if (const Token* token = Find("stage")) annotation.stage = trace.strings.Intern(token->value);
  if (const Token* token = Find("device")) {
    int64_t number = 0;
    if (!Signed(*token, &number)) return false;
    annotation.device = static_cast<int>(number);
    if (annotation.device != number) return Fail(*token, "a 32-bit integer");
  }
  if (const Token* token = Find("time"); token && !Signed(*token, &annotation.time_us)) {
    return false;
  }
  trace.annotations.push_back(annotation);
  return true;
}

bool TextReader::DiagnosticLine() {
  const Token* name = Word();
  if (name == nullptr) return Missing("a diagnostic");
  const std::optional<DiagnosticKind> kind = DiagnosticFromName(name->value);
  if (!kind) return Fail(*name, "a diagnostic");
  uint64_t count = 1;
  if (!NumberOf("count", &count)) return false;
  std::vector<Diagnostics::Place> places;
  while (const Token* at = Find("at")) {
    uint64_t position = 0;
    if (!Number(*at, &position)) return false;
    const Token* detail = Find("detail");
    places.push_back({position, detail == nullptr ? "" : std::string(detail->value)});
  }
  builder_.trace().diagnostics.Restore(*kind, count, std::move(places));
  return true;
}

}  // namespace

bool LooksLikeText(std::string_view head) {
  if (head.substr(0, kTextMagic.size()) != kTextMagic) return false;
  const std::string_view rest = head.substr(kTextMagic.size());
  return rest.empty() || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n';
}

absl::StatusOr<Trace> ReadText(ByteSource& source) { return TextReader(source).Read(); }

}  // namespace memreplay
