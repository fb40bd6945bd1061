// memreplay convert IN OUT
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/file_report.h"
#include "report/run/run_log.h"
#include "report/run/run_walk.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/what_if.h"
#include "trace/bytes/output_file.h"
#include "trace/formats/open_trace.h"
#include "trace/formats/write_trace.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct ConvertFlags {
  SettingsRequest settings;
  std::optional<int64_t> device;
  bool slices = false;
  std::string to;
};

// Returns whether the format shows a run, for which the file has to be replayed.
struct RunFormat {
  std::string_view name;
  std::string_view extensions;
  std::string_view description;
  bool is_of_one_device = false;
  absl::Status (*write)(const Study& study, const RunLog& log, const ConvertFlags& options,
                        bool is_first, ByteSink& sink);
};

constexpr RunFormat kRunFormats[] = {
    {"perfetto", ".pftrace .perfetto-trace",
     "counters and, with --slices, allocations for ui.perfetto.dev", false,
     [](const Study& study, const RunLog& log, const ConvertFlags& options, bool, ByteSink& sink) {
       return WritePerfetto(study.schedule(), study.meanings(), log, options.slices, sink);
     }},
    {"csv", ".csv", "one line per event with all figures after it", false,
     [](const Study& study, const RunLog& log, const ConvertFlags&, bool is_first, ByteSink& sink) {
       return WriteCsv(study.schedule(), log, is_first, sink);
     }},
    {"svg", ".svg", "a picture of memory over the run", true,
     [](const Study& study, const RunLog& log, const ConvertFlags&, bool, ByteSink& sink) {
       return WriteSvg(study.schedule(), log, StrCat("device ", study.device()), sink);
     }},
};

const RunFormat* FindRunFormat(const std::string& to, const std::string& out) {
  for (const RunFormat& format : kRunFormats) {
    if (to == format.name) return &format;
    for (const absl::string_view extension : absl::StrSplit(ToAbsl(format.extensions), ' ')) {
      if (to.empty() && absl::EndsWith(out, extension)) return &format;
    }
  }
  return nullptr;
}

std::vector<std::string_view> FormatNames() {
  std::vector<std::string_view> names;
  for (const TraceFormat& format : WritableFormats()) names.push_back(format.name);
  for (const RunFormat& format : kRunFormats) names.push_back(format.name);
  return names;
}

std::string JoinedNames() {
  std::string text;
  for (const std::string_view name : FormatNames())
    StrAppend(&text, text.empty() ? "" : ", ", name);
  return text;
}

std::string Description() {
  std::string text = StrCat(kConvertHelp, "\nformats:");
  const auto add = [&text](std::string_view name, std::string_view description,
                           std::string_view extensions) {
    StrAppend(&text, "\n  ", name, std::string(name.size() < 24 ? 24 - name.size() : 1, ' '),
              description, " (", extensions, ")");
  };
  for (const TraceFormat& format : WritableFormats()) {
    add(format.name, format.description, format.extensions);
  }
  StrAppend(&text, "\n\nformats that show a run, for which the file is replayed:");
  for (const RunFormat& format : kRunFormats) {
    add(format.name, format.description, format.extensions);
  }
  return text;
}

absl::StatusOr<const TraceFormat*> ChooseFormat(const std::string& to, const std::string& out) {
  const TraceFormat* format = to.empty() ? WritableFormatOfPath(out) : FindWritableFormat(to);
  if (format != nullptr) return format;
  if (to.empty()) {
    return InvalidArgument("convert: the extension of ", out,
                           " is not that of a known format; give --to, one of: ", JoinedNames());
  }
  return InvalidArgument("convert: --to: expected one of ", JoinedNames(), "; found '", to, "'",
                         DidYouMean(to, FormatNames()));
}

// Replays the file as `report` does.
absl::Status Replayed(const Study& study, RunLogObserver* log) {
  if (study.settings().as_recorded) {
    study.WatchAsRecorded(log);
    return absl::OkStatus();
  }
  return ReplayWhatIf(study.schedule(), study.settings(), log).status();
}

absl::Status WriteRuns(const std::string& in, const std::string& out, const RunFormat& format,
                       const ConvertFlags& options) {
  Progress progress(StrCat("reading ", in));
  ASSIGN_OR_RETURN(const OpenedFile opened, OpenFile(in, options.settings));
  const std::vector<DeviceTrace>& devices = opened.trace->devices;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!options.device.has_value() || devices[i].device == *options.device) chosen.push_back(i);
  }
  if (chosen.empty()) return InvalidArgument(in, ": has no such device");
  if (format.is_of_one_device && chosen.size() > 1) {
    return InvalidArgument(in, ": has ", chosen.size(), " devices; choose one with --device");
  }
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(out, {in}));
  for (const size_t index : chosen) {
    progress.SetActivity(StrCat("replaying device ", devices[index].device));
    const Study& study = *opened.devices[index];
    const Schedule& schedule = study.schedule();
    RunLogObserver log(schedule, study.settings().as_recorded);
    RETURN_IF_ERROR(Replayed(study, &log));
    progress.SetActivity(StrCat("writing ", out));
    const absl::Status written =
        format.write(study, log.log(), options, index == chosen.front(), file);
    if (!written.ok()) return Within(out, written);
  }
  return file.Close();
}

}  // namespace

absl::StatusOr<int> RunConvert(const CommandLine& line) {
  ConvertFlags options;
  FlagSet flags("convert IN OUT [flags]", Description());
  flags.AddText("to", "FORMAT", &options.to,
                "format of OUT; the default follows from its extension");
  flags.AddSwitch("slices", &options.slices,
                  "for perfetto: every allocation as a slice, by line of code");
  flags.AddText("conf", "CONF", &options.settings.conf,
                "for a run: PYTORCH_CUDA_ALLOC_CONF to replay under");
  AddCapacityFlag(&flags, &options.settings,
                  "for a run: memory of the device, or the name of a GPU, such as rtx-4090");
  flags.AddNumber("device", "N", &options.device, "for a run: only this device of the file");
  const absl::StatusOr<std::vector<std::string>> paths = flags.Parse(line.args);
  if (!paths.ok()) return Within("convert", paths.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (paths->size() != 2) {
    return InvalidArgument("convert: expected IN and OUT, found ", paths->size(),
                           " arguments; see memreplay convert --help");
  }
  const std::string& in = (*paths)[0];
  const std::string& out = (*paths)[1];
  RETURN_IF_ERROR(CheckOutputs({out}, {in}));
  if (const RunFormat* format = FindRunFormat(options.to, out); format != nullptr) {
    RETURN_IF_ERROR(WriteRuns(in, out, *format, options));
    return kExitAnswered;
  }
  ASSIGN_OR_RETURN(const TraceFormat* format, ChooseFormat(options.to, out));

  Progress progress(StrCat("reading ", in));
  ASSIGN_OR_RETURN(const Trace trace, OpenTrace(in));
  progress.SetActivity(StrCat("writing ", out));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(out, {in}));
  std::vector<std::string> losses;
  const absl::Status written = format->write(trace, file, &losses);
  if (!written.ok() && file.status().ok()) return Within(out, written);
  RETURN_IF_ERROR(file.Close());
  for (const std::string& loss : losses) PrintError(StrCat("left out of ", out, ": ", loss));
  return kExitAnswered;
}

}  // namespace memreplay
