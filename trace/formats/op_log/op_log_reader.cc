#include "trace/formats/op_log/op_log_reader.h"

#include <charconv>
#include <string>

#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

constexpr size_t kMaxLine = 1 << 16;

size_t SkipBlanks(std::string_view line, size_t at) {
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
  return at;
}

// An error in a line.
struct Defect {
  size_t at;
  std::string_view expected;
};

std::optional<Defect> ParseLine(std::string_view line, uint64_t* id, bool* frees, uint64_t* size) {
  const char* const end = line.data() + line.size();
  size_t at = SkipBlanks(line, 0);
  const size_t id_at = at;
  const auto [id_end, id_error] = std::from_chars(line.data() + at, end, *id);
  if (id_error != std::errc()) return Defect{id_at, "an id from 0 to 18446744073709551615"};
  at = static_cast<size_t>(id_end - line.data());
  const size_t gap = at;
  at = SkipBlanks(line, at);
  if (at == gap) return Defect{at, "a space after the id"};
  *frees = at < line.size() && line[at] == '-';
  if (*frees) ++at;
  const auto [size_end, size_error] = std::from_chars(line.data() + at, end, *size);
  if (size_error != std::errc() || *size == 0) {
    return Defect{at, "a size from 1 to 18446744073709551615"};
  }
  at = SkipBlanks(line, static_cast<size_t>(size_end - line.data()));
  if (at != line.size()) return Defect{at, "the end of the line"};
  return std::nullopt;
}

std::string Found(std::string_view line, size_t at) {
  const std::string_view rest = line.substr(at, 40);
  return rest.empty() ? "the end of the line" : StrCat("'", rest, "'");
}

}  // namespace

bool LooksLikeOpLog(std::string_view head) {
  uint64_t id = 0;
  uint64_t size = 0;
  bool frees = false;
  return !ParseLine(head.substr(0, head.find('\n')), &id, &frees, &size).has_value();
}

absl::StatusOr<Trace> ReadOpLog(ByteSource& source) {
  TraceBuilder builder("op_log");
  builder.trace().is_program = true;
  Event event;
  event.stream = builder.StreamNumber(StreamHandle(0));
  std::string_view line;
  uint64_t number = 0;
  while (true) {
    const uint64_t begin = source.position();
    if (!source.ReadLine(&line, kMaxLine)) break;
    ++number;
    if (SkipBlanks(line, 0) == line.size()) continue;
    uint64_t id = 0;
    uint64_t size = 0;
    bool frees = false;
    if (const auto defect = ParseLine(line, &id, &frees, &size)) {
      return absl::InvalidArgumentError(StrCat("line ", number, ", byte ", begin + defect->at,
                                               ": expected ", defect->expected, ", found ",
                                               Found(line, defect->at)));
    }
    event.kind = frees ? EventKind::kFree : EventKind::kAlloc;
    event.address = Address(id);
    event.size = Bytes(size);
    builder.Add(0, event);
  }
  RETURN_IF_ERROR(source.status());
  return std::move(builder).Finish();
}

}  // namespace memreplay
