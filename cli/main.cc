// memreplay: dispatches to the subcommands.
#include <google/protobuf/stubs/logging.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/guards.h"
#include "cli/output.h"
#include "report/words/sizes.h"
#include "report/words/version.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  absl::StatusOr<int> (*run)(absl::Span<const std::string> args);
};

constexpr Command kCommands[] = {
    {"inspect", "what is in a file: devices, streams, pools, peaks, how complete it is",
     RunInspect},
    {"replay", "replay a file, as recorded or under other settings; compare with the recording",
     RunReplay},
    {"oom", "why memory ran out, and what would have helped", RunOom},
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
    {"fleet", "the recordings of many jobs, over a cluster: Parquet tables and a page", RunFleet},
};

std::string Help() {
  std::string text =
      "memreplay replays what a PyTorch program asked of GPU memory through PyTorch's own\n"
      "caching-allocator rules, without a GPU or, with the command gpu, on one.\n"
      "\n"
      "usage: memreplay COMMAND [ARGUMENTS]\n"
      "\n"
      "commands:\n";
  for (const Command& command : kCommands) {
    StrAppend(&text, "  ", command.name, std::string(10 - command.name.size(), ' '),
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

absl::StatusOr<int> Dispatch(const std::vector<std::string>& args) {
  if (args.empty()) {
    return absl::InvalidArgumentError("no command given; memreplay --help lists them");
  }
  // "help COMMAND" is "COMMAND --help".
  if (args[0] == "help" && args.size() > 1) return Dispatch({args[1], "--help"});
  const std::string& name = args[0];
  if (name == "--help" || name == "-h" || name == "help") {
    if (const absl::Status printed = Print(Help()); !printed.ok()) return printed;
    return kExitAnswered;
  }
  if (name == "--version") {
    if (const absl::Status printed = Print(StrCat("memreplay ", kVersion, "\n")); !printed.ok()) {
      return printed;
    }
    return kExitAnswered;
  }
  std::vector<std::string_view> names = {"--help", "--version"};
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(absl::MakeConstSpan(args).subspan(1));
    names.push_back(command.name);
  }
  const std::string_view nearest = NearestWord(name, names);
  return absl::InvalidArgumentError(
      StrCat(name[0] == '-' ? "unknown flag " : "unknown command ", name,
             nearest.empty() ? std::string("; memreplay --help lists what is known")
                             : StrCat("; did you mean ", nearest, "?")));
}

// Takes --memory-limit, which every command has, out of the command line.
absl::Status TakeMemoryLimit(std::vector<std::string>* args) {
  // A driver and other people's programs map more than they touch.
  const bool is_ours = args->empty() || ((*args)[0] != "gpu" && (*args)[0] != "record" &&
                                         !(args->size() > 1 && (*args)[1] == "script"));
  uint64_t limit = is_ours ? DefaultMemoryLimit() : 0;
  constexpr std::string_view kFlag = "--memory-limit";
  for (size_t at = 0; at < args->size() && (*args)[at] != "--"; ++at) {
    const std::string word = (*args)[at];
    if (!word.starts_with(kFlag) || (word.size() > kFlag.size() && word[kFlag.size()] != '=')) {
      continue;
    }
    const bool joined = word.size() > kFlag.size();
    if (!joined && at + 1 == args->size()) {
      return absl::InvalidArgumentError(StrCat(kFlag, " wants a value: SIZE"));
    }
    const absl::StatusOr<Bytes> size =
        ParseSize(joined ? std::string_view(word).substr(kFlag.size() + 1) : (*args)[at + 1]);
    if (!size.ok())
      return absl::InvalidArgumentError(StrCat(kFlag, ": ", ToStd(size.status().message())));
    limit = size->value();
    const auto first = args->begin() + static_cast<ptrdiff_t>(at);
    args->erase(first, first + (joined ? 1 : 2));
    break;
  }
  return LimitMemory(limit);
}

int Main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const absl::Status limited = TakeMemoryLimit(&args);
  const absl::StatusOr<int> status = limited.ok() ? Dispatch(args) : limited;
  if (status.ok()) return *status;
  PrintError(ToStd(status.status().message()));
  return kExitUnusable;
}

}  // namespace
}  // namespace memreplay

int main(int argc, char** argv) {
  memreplay::HoldStandardDescriptors();
  memreplay::TellOfShrunkFiles();
  // What Protobuf's parsers refuse, the readers tell in one line.
  google::protobuf::SetLogHandler(nullptr);
  return memreplay::Main(argc, argv);
}
