#include "trace/program/program_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "trace/bytes/json_scanner.h"
#include "trace/program/program_events.h"
#include "trace/program/program_expander.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

constexpr size_t kMaxProgram = size_t{16} << 20;
constexpr size_t kHead = 4096;
constexpr std::string_view kTextFormat = "program_text";
constexpr std::string_view kJsonFormat = "program_json";

// Removes `token` and the blanks before it from the front.
bool Take(std::string_view token, std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t\r\n"), text->size()));
  if (text->substr(0, token.size()) != token) return false;
  text->remove_prefix(token.size());
  return true;
}

absl::StatusOr<Trace> Read(ByteSource& source) {
  ASSIGN_OR_RETURN(program::ProgramCode code, program::ReadProgramCode(source, {}));
  return program::ExpandProgram(std::move(code));
}

}  // namespace

bool LooksLikeProgramText(std::string_view head) {
  while (Take("#", &head)) head.remove_prefix(std::min(head.find('\n'), head.size()));
  return Take("format", &head) && Take(":", &head) &&
         (Take("\"memsched\"", &head) || Take("'memsched'", &head));
}

bool LooksLikeProgramJson(std::string_view head) {
  // The scanner keeps the members before an error, so a truncated text is usable.
  std::vector<JsonMember> members;
  ScanJsonObject(head, &members);
  for (const JsonMember& member : members) {
    if (member.key == "format") return member.value.raw == "memsched";
  }
  return false;
}

absl::StatusOr<Trace> ReadProgramText(ByteSource& source) { return Read(source); }
absl::StatusOr<Trace> ReadProgramJson(ByteSource& source) { return Read(source); }

namespace program {

absl::StatusOr<ProgramCode> ReadProgramCode(ByteSource& source, const CompileOptions& options) {
  const std::string_view text = source.Peek(kMaxProgram + 1);
  RETURN_IF_ERROR(source.status());
  if (text.size() > kMaxProgram) {
    return absl::InvalidArgumentError(
        StrCat("byte ", kMaxProgram, ": expected the end of the schedule, found more"));
  }
  const bool is_json = LooksLikeProgramJson(text.substr(0, kHead));
  if (!is_json && !LooksLikeProgramText(text.substr(0, kHead))) {
    return absl::InvalidArgumentError("expected a schedule that begins with its format");
  }
  ASSIGN_OR_RETURN(ProgramText parsed, is_json ? ParseProgramJson(text) : ParseProgramText(text));
  absl::StatusOr<ProgramCode> code = CompileProgram(parsed, options);
  if (code.ok()) code->format = std::string(is_json ? kJsonFormat : kTextFormat);
  return code;
}

absl::StatusOr<Trace> ExpandProgram(ProgramCode code, uint64_t most_kept) {
  TraceBuilder builder(code.format);
  Trace& trace = builder.trace();
  trace.is_program = true;
  trace.total_memory = code.total;
  trace.memory_fraction = code.fraction;
  if (!code.conf.empty()) trace.settings.emplace().conf = code.conf;
  trace.completion = code.completion;
  trace.program_header = code.header;
  for (uint64_t stream = 0; stream < code.streams; ++stream) {
    builder.StreamNumber(StreamHandle(stream));  // in order, so that numbers equal handles
  }
  for (const PoolId pool : code.pools) builder.PoolIndex(pool);
  builder.Device(0);
  {
    ProgramExpander expander(&code, &trace.strings, &trace.stacks);
    Event event;
    bool more = expander.Next(&event);
    for (; more && expander.events() <= most_kept; more = expander.Next(&event)) {
      event.id = kNoAllocation;  // a file does not contain it
      builder.Add(0, event);
    }
    RETURN_IF_ERROR(expander.status());
    if (!more) return std::move(builder).Finish();
  }
  builder.Device(0).events.clear();
  Trace long_trace = std::move(builder).Finish();
  ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramEvents> events,
                   ProgramEvents::Make(std::move(code)));
  events->AddTexts(&long_trace.strings, &long_trace.stacks);
  long_trace.devices[0].events = EventList(events);
  return long_trace;
}

absl::StatusOr<ProgramCode> OpenProgramCode(const std::string& path,
                                            const CompileOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  absl::StatusOr<ProgramCode> code = ReadProgramCode(*source, options);
  return code.ok() ? std::move(code) : Within(path, code.status());
}

absl::StatusOr<Trace> OpenProgram(const std::string& path, const CompileOptions& options) {
  ASSIGN_OR_RETURN(ProgramCode code, OpenProgramCode(path, options));
  absl::StatusOr<Trace> trace = ExpandProgram(std::move(code));
  return trace.ok() ? std::move(trace) : Within(path, trace.status());
}

}  // namespace program
}  // namespace memreplay
