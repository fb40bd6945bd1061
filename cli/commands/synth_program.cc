#include "cli/commands/synth_program.h"

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "report/text/render.h"
#include "trace/bytes/output_file.h"
#include "trace/formats/write_trace.h"
#include "trace/program/program_check.h"
#include "trace/program/program_reader.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kSynthProgramDescription[] =
    "Expands a schedule (text proto or JSON; docs/formats.md) into the requests it stands\n"
    "for. They go to standard output as JSON lines, or to the file named by -o. With --check\n"
    "nothing is written: the command reports what the schedule requests in each phase and\n"
    "what it leaves allocated, using memory in proportion to what is live at once, however\n"
    "many events there are. All other commands read schedules directly.";

}  // namespace

absl::Status CheckProgramOutput(const std::string& path, bool is_reported,
                                const std::vector<std::string>& inputs) {
  std::vector<std::string> outputs;
  if (is_reported) outputs.emplace_back("-");
  if (!path.empty()) outputs.push_back(path);
  if (outputs.empty()) outputs.emplace_back("-");
  return CheckOutputs(outputs, inputs);
}

absl::Status WriteProgram(const Trace& program, const std::string& path, const std::string& to,
                          const std::vector<std::string>& inputs) {
  const std::string out = path.empty() ? "-" : path;
  const TraceFormat* format = !to.empty() ? FindWritableFormat(to) : WritableFormatOfPath(out);
  if (format == nullptr && !to.empty()) {
    return absl::InvalidArgumentError(
        StrCat("--to: unknown format '", to, "'; memreplay convert --help lists them"));
  }
  if (format == nullptr) format = FindWritableFormat("flat_jsonl");
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(out, inputs));
  FileSink sink(&file);
  std::vector<std::string> losses;
  file.Fail(format->write(program, sink, &losses));
  const absl::Status closed = file.Close();
  for (const std::string& loss : losses) PrintError(StrCat("left out of ", out, ": ", loss));
  return closed;
}

absl::StatusOr<int> RunSynthSchedule(const CommandLine& line) {
  std::string out, to;
  program::CompileOptions options;
  std::optional<int64_t> max_events;
  bool check = false, json = false;
  FlagSet flags("synth [schedule] FILE [flags]", kSynthProgramDescription);
  flags.AddParsed(
      "set", "NAME=N", "set a parameter of the schedule",
      [&](std::string_view text) { return ReadParameter(text, &options.params, nullptr); },
      /*repeats=*/true);
  flags.AddText("out", "FILE", &out, "where to write the requests; - is standard output");
  flags.AddShort('o', "out");
  flags.AddText("to", "FORMAT", &to, "their format; the default follows from FILE's extension");
  flags.AddSwitch("check", &check, "report what it requests");
  flags.AddSwitch("json", &json, "report it as JSON");
  flags.AddNumber("max_events", "N", &max_events,
                  "the largest number of events (default: max_events of the schedule)");
  const absl::StatusOr<std::vector<std::string>> paths = flags.Parse(line.args);
  if (!paths.ok()) return Within("synth", paths.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (paths->size() != 1) {
    return absl::InvalidArgumentError(
        StrCat("synth: expected one schedule, found ", paths->size()));
  }
  const std::string& path = paths->front();
  if (max_events.has_value()) {
    if (*max_events <= 0) {
      return absl::InvalidArgumentError("synth: --max_events: expected a positive number");
    }
    options.max_events = static_cast<uint64_t>(*max_events);
  }
  RETURN_IF_ERROR(CheckProgramOutput(out, check || json, *paths));
  Progress progress(StrCat("expanding ", path));
  ASSIGN_OR_RETURN(const program::ProgramCode code, program::OpenProgramCode(path, options));
  if (check || json) {
    absl::StatusOr<proto::ProgramCheck> result = program::CheckProgram(code);
    if (!result.ok()) return Within(path, result.status());
    result->set_file(path);
    RETURN_IF_ERROR(json ? Print(RenderProgramCheckJson(*result))
                         : PrintText(RenderProgramCheck(*result)));
    if (out.empty()) return kExitAnswered;
  }
  const absl::StatusOr<Trace> trace = program::ExpandProgram(code);
  if (!trace.ok()) return Within(path, trace.status());
  const absl::Status written = WriteProgram(*trace, out, to, *paths);
  if (!written.ok()) return Within("synth", written);
  return kExitAnswered;
}

}  // namespace memreplay
