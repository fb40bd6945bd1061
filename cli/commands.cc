#include <string>

#include "cli/command.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr Command kCommands[] = {
    {"inspect", "what is in a file: devices, streams, pools, peaks, how complete it is",
     RunInspect},
    {"replay", "replay a file, as recorded or under other settings; compare with the recording",
     RunReplay},
    {"oom", "why memory ran out, and what would have helped", RunOom},
    {"explain", "what an error text or a log says ran out, why, and what to do", RunExplain},
    {"diff", "what changed between two files or reports", RunDiff},
    {"sweep", "rank settings, given ones or a search; lines to paste", RunSweep},
    {"fit", "the smallest device memory on which a file survives, per settings", RunFit},
    {"gpu", "replay a file on a real GPU and hold it against the simulation", RunGpu},
    {"report", "an interactive page: timeline, block map, tables; other settings overlaid",
     RunReport},
    {"convert", "write a file in another format", RunConvert},
    {"lint", "what is wrong, useless or risky in a PYTORCH_CUDA_ALLOC_CONF string", RunLint},
    {"record", "run a PyTorch program on a GPU that is imagined, or real, and record it",
     RunRecord},
    {"synth", "what a training run or a schedule program will ask for, and what it needs",
     RunSynth},
    {"run", "another name of record", RunRecord},
    {"fleet", "the recordings of many jobs, over a cluster: Parquet tables and a page", RunFleet,
     true},
    {"completion", "what a shell completes after memreplay: bash, zsh or fish; or the man page",
     RunCompletion},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

std::string ProgramHelp() {
  std::string text =
      "memreplay replays what a PyTorch program asked of GPU memory through PyTorch's own\n"
      "caching-allocator rules, without a GPU or, with the command gpu, on one.\n"
      "\n"
      "usage: memreplay COMMAND [ARGUMENTS]\n"
      "\n"
      "commands:\n";
  for (const Command& command : kCommands) {
    StrAppend(&text, "  ", command.name, std::string(12 - command.name.size(), ' '),
              command.summary, "\n");
  }
  StrAppend(&text,
            "\n"
            "memreplay COMMAND --help, or help COMMAND, tells more. A FILE is a pickle of\n"
            "torch.cuda.memory._dump_snapshot(), any format that convert writes, or a schedule\n"
            "program (docs/formats.md); plain, gzip or zstd, - for standard input; the format is\n"
            "told from its bytes. --set NAME=N sets a\n"
            "parameter of a program for replay, oom, sweep, fit, gpu and synth.\n"
            "--memory-limit SIZE (0: none) ends any command that wants more memory; without it,\n"
            "at three quarters of the machine's or its control group's, gpu and record never.\n"
            "\n"
            "exit status: 0 answered and nothing wrong, 1 the answer is bad (the replay differs\n"
            "from the recording, memory runs out, the file contradicts itself), 2 the input or\n"
            "the call is unusable.\n");
  return text;
}

}  // namespace memreplay
