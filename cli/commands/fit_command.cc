// memreplay fit FILE...
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/fit.h"
#include "report/ask/settings_text.h"
#include "report/text/render.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct FitFlags {
  FileFlags file;
  std::vector<std::string> confs;
  std::optional<Bytes> context;
  std::string capacity;  // as given
};

absl::StatusOr<int> FindValue(const Inputs& inputs, const FitFlags& options) {
  if (inputs.model() == nullptr && inputs.files().size() != 1) {
    return InvalidArgument("--set ", inputs.unknown_key(), "=?: expected one program, found ",
                           inputs.files().size());
  }
  Progress progress(StrCat("trying values of ", inputs.unknown_key()));
  LargestFitQuestion question;
  question.model = inputs.name();
  question.key = inputs.unknown_key();
  question.make_run = [&](int64_t value) { return inputs.MakeRun(value); };
  question.confs = options.confs;
  question.settings = options.file.settings;
  question.cuda_context =
      SetContext(options.context, options.capacity, inputs.multiprocessors(), &question.settings);
  ASSIGN_OR_RETURN(const proto::Report report, AskLargestFit(question));
  RETURN_IF_ERROR(PrintAnswer(report, options.file.json, [&] {
    return StrCat(RenderLargestFit(report), NoteLines({question.settings.capacity_note}));
  }));
  for (const auto& setting : report.largest_fit().settings()) {
    if (setting.largest() > 0) return kExitAnswered;
  }
  return kExitBad;
}

}  // namespace

absl::StatusOr<int> RunFit(const CommandLine& line) {
  FitFlags options;
  FlagSet flags("fit FILE...|MODEL [flags]", kFitHelp);
  AddConfsFlag(&flags, &options.confs, "settings; may be given several times");
  AddTorchFlag(&options.file.settings.torch, &flags);
  AddDeviceFlags(&flags, &options.file.settings);
  AddDeviceFlag(&options.file.device, &flags);
  AddFileFlags(&options.file, &flags);
  AddCapacityFlag(&flags, &options.file.settings,
                  "for MODEL --KEY=?: the memory available to the allocator, or the name of a\n"
                  "GPU, such as rtx-4090",
                  "capacity", &options.capacity);
  flags.AddSize(
      "context", &options.context,
      "memory of the CUDA context, which nvidia-smi shows as well (default: by the GPU's\n"
      "multiprocessors; 500 MiB if no GPU is named)");
  ASSIGN_OR_RETURN(const std::optional<Inputs> parsed,
                   ParseInputs(line, "fit", &flags, /*may_be_none=*/true));
  if (!parsed.has_value()) return kExitAnswered;
  const Inputs& inputs = *parsed;
  if (!inputs.unknown_key().empty()) {
    const absl::StatusOr<int> status = FindValue(inputs, options);
    return status.ok() ? status : Within("fit", status.status());
  }
  if (options.file.settings.capacity.has_value() || options.file.settings.unlimited) {
    return absl::InvalidArgumentError(
        "fit: --capacity requires MODEL --batch_size=?; for a file, fit finds the smallest "
        "capacity");
  }
  if (inputs.files().empty()) return NoFile("fit");
  return AnswerFiles("fit", inputs, options.file, [&](const Study& study, const FileRun& run) {
    run.progress.SetActivity(StrCat("fitting ", run.file));
    return AskFit(study, options.confs, run.threads, &run.progress);
  });
}

}  // namespace memreplay
