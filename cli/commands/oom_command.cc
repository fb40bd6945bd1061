// memreplay oom FILE...
#include <optional>
#include <string>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/record_flags.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/oom.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct OomFlags {
  FileFlags file;
  OomReportOptions report;
  std::optional<std::string> message;
};

}  // namespace

absl::StatusOr<int> RunOom(const CommandLine& line) {
  OomFlags options;
  // The rules of another release may be compared with the same recording.
  options.file.settings.torch_is_as_recorded = true;
  FlagSet flags("oom FILE...|MODEL [flags]", kOomHelp);
  AddCapacityFlag(&flags, &options.file.settings,
                  "replay on a device with this much memory, such as 16GiB, with that of a GPU,\n"
                  "such as rtx-4090, or unlimited");
  AddConfFlag(&flags, &options.file.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  AddTorchFlag(&options.file.settings.torch, &flags);
  AddDeviceFlags(&flags, &options.file.settings);
  flags.AddParsed("recorded-gpu", "SIZE|NAME",
                  "the GPU that was recorded, or its memory; estimated if not given",
                  [&options](std::string_view text) {
                    const absl::StatusOr<Bytes> memory = ParseMemory(text);
                    if (memory.ok()) options.report.card = *memory;
                    return memory.status();
                  });
  AddDeviceFlag(&options.file.device, &flags);
  AddHeldFlags(&options.report.held, &flags);
  flags.AddText("message", "TEXT", &options.message,
                "explain an error text instead: a file or log that contains it, - for\n"
                "standard input, or the text itself");
  AddFileFlags(&options.file, &flags);
  ASSIGN_OR_RETURN(const std::optional<Inputs> inputs,
                   ParseInputs(line, "oom", &flags, /*may_be_none=*/true));
  if (!inputs.has_value()) return kExitAnswered;
  const bool has_files = !inputs->files().empty();
  if (options.message.has_value()) {
    if (has_files) return absl::InvalidArgumentError("oom: give a FILE or --message, not both");
    return PrintExplanation(*options.message, options.file.json);
  }
  if (!has_files) return NoFile("oom");
  return AnswerFiles("oom", *inputs, options.file, [&](const Study& study, const FileRun& run) {
    run.progress.SetActivity(StrCat("examining device ", study.device()));
    return AskOom(study, options.report, &run.progress);
  });
}

}  // namespace memreplay
