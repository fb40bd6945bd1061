// memreplay inspect FILE...
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/file_report.h"
#include "report/ask/replay.h"
#include "sim/recording/replay_settings.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The content of a file can be reported even if its settings are valid in no release.
absl::StatusOr<OpenedFile> OpenAnyway(const std::string& file, const InspectQuestion& question,
                                      size_t threads) {
  ASSIGN_OR_RETURN(Trace read, OpenTrace(file));
  const auto trace = std::make_shared<const Trace>(std::move(read));
  absl::StatusOr<OpenedFile> opened = OpenFile(file, trace, {}, threads);
  if (opened.ok() || question.deep) return opened;
  SettingsRequest defaults;
  defaults.conf = "";
  defaults.fraction = 1;
  return OpenFile(file, trace, defaults, threads);
}

}  // namespace

absl::StatusOr<int> RunInspect(const CommandLine& line) {
  FileFlags options;
  InspectQuestion question;
  FlagSet flags("inspect FILE... [flags]", kInspectHelp);
  AddDeviceFlag(&options.device, &flags);
  flags.AddSwitch("deep", &question.deep,
                  "also replay the file: memory over time, what it is for (parameters, gradients,\n"
                  "activations ...) by phase and module, what holds it, what several streams\n"
                  "cost, the steps of the loop and what they leave behind, and error bars for\n"
                  "recordings that began late");
  AddHeldFlags(&question.held, &flags);
  AddFileFlags(&options, &flags);
  const absl::StatusOr<std::vector<std::string>> files = flags.Parse(line.args);
  if (!files.ok()) return Within("inspect", files.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (files->empty()) return NoFile("inspect");
  return ReportEach(
      "inspect", *files, options.form(), options.jobs,
      [&](const std::string& file, size_t threads) -> absl::StatusOr<proto::Report> {
        Progress progress(StrCat("reading ", file));
        ASSIGN_OR_RETURN(const OpenedFile opened, OpenAnyway(file, question, threads));
        return AskDevices("inspect", file, opened, options.device,
                          [&](const Study& study) { return AskInspect(study, question); });
      });
}

}  // namespace memreplay
