#include <string>

#include "cli/commands/command.h"
#include "cli/io/output.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr Command kCommands[] = {
    {"inspect", "report what is in a file: devices, streams, pools, peaks, completeness",
     RunInspect, true},
    {"replay", "replay a file as recorded, or under other settings", RunReplay, true},
    {"oom", "explain why memory ran out and what would have helped", RunOom, true},
    {"explain", "explain an error text or a log: what ran out, why, and what to do", RunExplain,
     true},
    {"diff", "show what changed between two files or reports", RunDiff},
    {"sweep", "rank settings, searched or given, and print the best to paste", RunSweep, true},
    {.name = "sweep script",
     .summary = "rank values of a script's argument on simulated GPUs",
     .run = RunSweepScript,
     .maps_much = true},
    {"fit", "find the smallest device memory that is enough, for each setting", RunFit, true},
    {.name = "fit script",
     .summary = "find the largest value of a script's argument that fits a GPU",
     .run = RunFitScript,
     .maps_much = true},
    {.name = "advise",
     .summary = "try changes to a script: which make it fit a GPU, and what they cost",
     .run = RunAdvise,
     .is_common = true,
     .maps_much = true,
     .form = FormOfAdvise},
    {.name = "advise script",
     .summary = "run a script with each change, on a simulated GPU",
     .run = RunAdviseScript,
     .maps_much = true},
    {.name = "advise recording",
     .summary = "edit a recording as each change would have it",
     .run = RunAdviseRecording},
    {.name = "gpu",
     .summary = "replay a file on a real GPU and compare it with the simulation",
     .run = RunGpu,
     .maps_much = true},
    {"report", "write an interactive page: timeline, block map, tables", RunReport, true},
    {"convert", "write a file in another format", RunConvert},
    {"lint", "check a PYTORCH_CUDA_ALLOC_CONF string for errors and risks", RunLint},
    {.name = "record",
     .summary = "run a PyTorch script on a simulated or real GPU and record it",
     .run = RunRecord,
     .is_common = true,
     .maps_much = true},
    {.name = "synth",
     .summary = "predict the requests and the memory of a training run or a schedule",
     .run = RunSynth,
     .form = FormOfSynth},
    {.name = "synth schedule",
     .summary = "expand a schedule into the requests it stands for, or check it",
     .run = RunSynthSchedule},
    {"fleet", "analyse the recordings of many jobs on a cluster", RunFleet, false, true},
    {"mcp", "answer an assistant's questions (Model Context Protocol)", RunMcp, false, true},
    {"completion", "print shell completion for bash, zsh or fish, or the man page", RunCompletion},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string ProgramHelp(bool all) {
  std::string text = StrCat(
      "memreplay replays the GPU memory requests of a PyTorch script through the rules of\n"
      "PyTorch's own caching allocator, without a GPU or, with the command gpu, on one.\n"
      "\n"
      "usage: memreplay COMMAND [ARGUMENTS]\n"
      "\n",
      all ? "" : "common ", "commands:\n");
  const auto add = [&](bool forms, size_t column) {
    for (const Command& command : kCommands) {
      if (command.is_form() != forms || !(all || command.is_common)) continue;
      StrAppend(&text, "  ", command.name, std::string(column - command.name.size(), ' '),
                command.summary, "\n");
    }
  };
  add(false, 12);
  if (all) {
    text += "\nforms of commands, with a help of their own:\n";
    add(true, 18);
  } else {
    text += "\nother commands, which memreplay --help --all describes:\n ";
    for (const Command& command : kCommands) {
      if (!command.is_form() && !command.is_common) StrAppend(&text, " ", command.name);
    }
    text += "\n";
  }
  StrAppend(
      &text,
      "\n"
      "memreplay COMMAND --help, or memreplay help COMMAND, describes a command; memreplay FILE "
      "is\n"
      "memreplay inspect FILE or, for a text such as an error or a log, memreplay explain FILE.\n"
      "A FILE is a pickle written by torch.cuda.memory._dump_snapshot(), any format that convert\n"
      "writes, or a schedule (docs/formats.md), plain or compressed with gzip or zstd; - is\n"
      "standard input. The format is detected from the content.",
      all ? "\n--set NAME=N sets a parameter of a schedule for\n"
            "replay, oom, sweep, fit, gpu, report and synth. --memory-limit SIZE stops any "
            "command\n"
            "that needs more memory than that; 0 removes the limit. The default is three quarters "
            "of\n"
            "the memory of the machine or of its control group; gpu, record and what runs a "
            "script\n"
            "have none.\n"
          : "\n",
      "\n"
      "The exit status is 0 if there is an answer and nothing is wrong, 1 if something is wrong\n"
      "(the replay differs from the recording, memory runs out, the file contradicts itself),\n"
      "and 2 if the input or the command line is unusable.\n");
  return text;
}

absl::StatusOr<int> ShowHelp(const CommandLine& line, const FlagSet& flags, std::string_view more) {
  if (line.help != nullptr) {
    *line.help = flags.Describe();
    return kExitAnswered;
  }
  RETURN_IF_ERROR(PrintHelpText(StrCat(flags.Help(), more)));
  return kExitAnswered;
}

}  // namespace memreplay
