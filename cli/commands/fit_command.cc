// memreplay fit FILE...
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
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

constexpr char kFitDescription[] =
    "Finds the smallest device memory on which a file or a training run (MODEL, see\n"
    "memreplay synth) survives, for each --conf or, without --conf, for the file's own\n"
    "settings, the defaults and expandable segments. Every size tried is a complete replay;\n"
    "the sizes closest to the limit are listed.\n"
    "\n"
    "fit script --batch_size=? --card NAME -- train.py finds the largest value with which a\n"
    "PyTorch script fits on a simulated GPU, by running it; see fit script --help.\n"
    "\n"
    "The replay of a recording that began with memory in use starts with only what was live\n"
    "then, allocated again.\n"
    "\n"
    "MODEL --batch_size=? --capacity=12GiB finds the largest batch instead, for the memory\n"
    "that is available to the allocator. The question mark may also stand for block_size,\n"
    "seq_len or the number of layers, and FILE --set NAME=? finds a parameter of a\n"
    "schedule, on the schedule's own device unless --capacity is given. A table per setting\n"
    "lists what was tried: the peak, or the phase and the tensor at which memory runs out.\n"
    "\n"
    "The exit status is 1 if the recording is not reproduced, the file contradicts itself,\n"
    "or no value fits under any setting.";

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
  FlagSet flags("fit FILE...|MODEL [flags]", kFitDescription);
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
