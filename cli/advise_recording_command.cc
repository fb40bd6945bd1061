// memreplay advise FILE...
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"
#include "cli/file_command.h"
#include "cli/flags.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/replay_flags.h"
#include "report/ask/advise_recording.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kAdviseFileDescription[] =
    "Finds which change of the script would lower the peak of a recording, or make it fit:\n"
    "activation checkpointing, activations on the host, the loss in chunks, the optimizer\n"
    "without foreach, gradients and leaks freed earlier, settings, and these together. Each\n"
    "is found by editing the recording and replaying it, at most 20 times (docs/advise.md).\n"
    "\n"
    "The goal is --card. Without it, it is the recorded GPU where memory ran out, and\n"
    "otherwise the lowest peak.\n"
    "\n"
    "The exit status is 1 if there is a goal and nothing reaches it.";

struct AdviseFileFlags {
  FileFlags file;
  std::string card;
};

}  // namespace

absl::StatusOr<int> RunAdviseRecording(const CommandLine& line) {
  AdviseFileFlags options;
  FlagSet flags("advise FILE... [flags]", kAdviseFileDescription);
  AddCapacityFlag(&flags, &options.file.settings,
                  "the memory that it should fit into: that of a GPU, such as rtx-4090, or a size\n"
                  "that is available to PyTorch",
                  "card", &options.card);
  AddTorchFlag(&options.file.settings.torch, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  AddFileFlags(&options.file, &flags);
  const absl::StatusOr<std::optional<Inputs>> inputs = ParseInputs(line, "advise", &flags);
  if (!inputs.ok()) return inputs.status();
  if (!inputs->has_value()) return kExitAnswered;
  return AnswerFiles("advise", **inputs, options.file, [&](const Study& study, const FileRun& run) {
    run.progress.SetActivity(StrCat("trying changes of ", run.file));
    const bool is_named = !options.file.settings.capacity_note.empty();  // not a size
    return AskAdvice(study, is_named ? options.card : "", &run.progress);
  });
}

}  // namespace memreplay
