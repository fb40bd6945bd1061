// memreplay synth MODEL and memreplay synth FILE
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/fit.h"
#include "report/ask/settings_text.h"
#include "report/text/render.h"
#include "sim/observe/phase_usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/what_if.h"
#include "synth/models.h"
#include "trace/bytes/output_file.h"
#include "trace/formats/write_trace.h"
#include "trace/program/program_check.h"
#include "trace/program/program_reader.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct SynthFlags {
  SettingsRequest settings;
  std::optional<Bytes> context;
  std::string capacity;  // as given
  std::string out;
  std::string to;
  bool summary = false;
  bool json = false;
};

// Returns OK if WriteProgram() can write to `path` and, if a report is printed too, that has
// standard output for itself.
absl::Status CheckProgramOutput(const std::string& path, bool is_reported,
                                const std::vector<std::string>& inputs) {
  std::vector<std::string> outputs;
  if (is_reported) outputs.emplace_back("-");
  if (!path.empty()) outputs.push_back(path);
  if (outputs.empty()) outputs.emplace_back("-");
  return CheckOutputs(outputs, inputs);
}

// Writes `program` to `path` ("-" or empty is standard output) in the format `to`. If that is
// empty, the extension decides, and else it is flat JSON lines. Never overwrites `inputs`.
absl::Status WriteProgram(const Trace& program, const std::string& path, const std::string& to,
                          const std::vector<std::string>& inputs) {
  const std::string out = path.empty() ? "-" : path;
  const TraceFormat* format = !to.empty() ? FindWritableFormat(to) : WritableFormatOfPath(out);
  if (format == nullptr && !to.empty()) {
    return InvalidArgument("--to: unknown format '", to, "'; memreplay convert --help lists them");
  }
  if (format == nullptr) format = FindWritableFormat("flat_jsonl");
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(out, inputs));
  std::vector<std::string> losses;
  file.Fail(format->write(program, file, &losses));
  const absl::Status closed = file.Close();
  for (const std::string& loss : losses) PrintError(StrCat("left out of ", out, ": ", loss));
  return closed;
}

absl::StatusOr<int> Predict(synth::TrainingRun run, const Inputs& inputs,
                            const SynthFlags& options) {
  SettingsRequest request = options.settings;
  request.torch = AllocatorRelease(run.torch_version);
  const AssumedOutside context =
      SetContext(options.context, options.capacity, inputs.multiprocessors(), &request);
  const auto trace = std::make_shared<const Trace>(std::move(run.program));
  ASSIGN_OR_RETURN(const ReplaySettings settings, ResolveSettings(*trace, request));
  PhaseUsage usage(*trace);
  ASSIGN_OR_RETURN(const WhatIfResult result,
                   ReplayWhatIf(Schedule::Build(trace, 0), settings, &usage));
  const proto::Report report =
      PredictionReport(inputs.model()->name, run.parameters, context, settings, usage);
  RETURN_IF_ERROR(PrintAnswer(report, options.json, [&] {
    return StrCat(RenderPrediction(report), NoteLines(settings.notes));
  }));
  return usage.oom().has_value() ? kExitBad : kExitAnswered;
}

std::string ModelNames() {
  std::vector<std::string> names;
  for (const synth::ModelKind& model : synth::ModelKinds()) names.emplace_back(model.name);
  return absl::StrJoin(names, " or ");
}

// Returns the keys of the model, for --help.
std::string KeysHelp(const synth::ModelKind& model) {
  std::string text = StrCat("\nkeys of ", model.name, ":\n");
  std::vector<std::string_view> without_effect;
  for (const synth::KeyInfo& key : model.keys()) {
    if (key.default_value.empty()) {
      without_effect.push_back(key.name);
      continue;
    }
    std::string left = StrCat("  --", key.name, "=", key.values);
    left.resize(std::max<size_t>(left.size() + 2, 34), ' ');
    StrAppend(&text, left, "default ", key.default_value, "\n");
  }
  if (!without_effect.empty()) {
    StrAppend(&text, "  accepted, without effect on memory:\n");
    std::string line = "   ";
    for (const std::string_view name : without_effect) {
      if (line.size() + name.size() > 84) {
        StrAppend(&text, line, "\n");
        line = "   ";
      }
      StrAppend(&line, " ", name);
    }
    StrAppend(&text, line, "\n");
  }
  return text;
}

absl::StatusOr<int> Synth(const CommandLine& line) {
  SynthFlags options;
  FlagSet flags("synth MODEL [CONFIG] [--KEY=VALUE...] [flags]", kSynthHelp);
  flags.AddText("out", "FILE", &options.out, "where to write the schedule; - is standard output");
  flags.AddShort('o', "out");
  flags.AddText("to", "FORMAT", &options.to,
                "its format; the default follows from FILE's extension");
  flags.AddSwitch("summary", &options.summary, "report what the run needs");
  flags.AddSwitch("json", &options.json, "report it as JSON");
  AddConfFlag(&flags, &options.settings.conf, "PYTORCH_CUDA_ALLOC_CONF");
  AddCapacityFlag(&flags, &options.settings,
                  "memory available to the allocator, or the name of a GPU, such as rtx-4090",
                  "capacity", &options.capacity);
  flags.AddSize("context", &options.context,
                "memory of the CUDA context (default: by the GPU's multiprocessors; 500 MiB if\n"
                "no GPU is named)");
  ASSIGN_OR_RETURN(const Inputs inputs, Inputs::Parse(line.args, &flags));
  if (flags.help_requested()) {
    return ShowHelp(line, flags, inputs.model() == nullptr ? "" : KeysHelp(*inputs.model()));
  }
  if (inputs.model() == nullptr) {
    return InvalidArgument("expected a model (", ModelNames(),
                           ") or the file of a schedule, found ",
                           inputs.name().empty() ? "none" : StrCat("'", inputs.name(), "'"));
  }
  if (!inputs.unknown_key().empty()) {
    return InvalidArgument("--", inputs.unknown_key(),
                           "=?: synth requires a value; memreplay fit searches for one");
  }
  ASSIGN_OR_RETURN(synth::TrainingRun run, inputs.MakeRun());
  const bool predicts = options.summary || options.json;
  RETURN_IF_ERROR(CheckProgramOutput(options.out, predicts, inputs.paths()));
  if (!predicts || !options.out.empty()) {
    RETURN_IF_ERROR(WriteProgram(run.program, options.out, options.to, inputs.paths()));
  }
  if (!predicts) return kExitAnswered;
  return Predict(std::move(run), inputs, options);
}

}  // namespace

std::string_view FormOfSynth(absl::Span<const std::string> args) {
  bool names_file = false;
  for (const std::string& word : args) {
    if (synth::FindModel(word) != nullptr) return "";
    names_file = names_file || (!word.starts_with('-') && word.find_first_of("./") != word.npos);
  }
  return names_file ? "synth schedule" : "";
}

absl::StatusOr<int> RunSynthSchedule(const CommandLine& line) {
  std::string out, to;
  program::CompileOptions options;
  std::optional<int64_t> max_events;
  bool check = false, json = false;
  FlagSet flags("synth [schedule] FILE [flags]", kSynthScheduleHelp);
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
    return InvalidArgument("synth: expected one schedule, found ", paths->size());
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

absl::StatusOr<int> RunSynth(const CommandLine& line) {
  if (!FormOfSynth(line.args).empty()) return RunSynthSchedule(line);
  const absl::StatusOr<int> status = Synth(line);
  return status.ok() ? status : Within("synth", status.status());
}

}  // namespace memreplay
