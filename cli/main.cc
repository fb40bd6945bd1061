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

absl::StatusOr<int> Dispatch(const std::vector<std::string>& args) {
  if (args.empty()) {
    return absl::InvalidArgumentError("no command given; memreplay --help lists the commands");
  }
  // "help COMMAND" is "COMMAND --help".
  if (args[0] == "help" && args.size() > 1) return Dispatch({args[1], "--help"});
  const std::string& name = args[0];
  if (name == "--help" || name == "-h" || name == "help") {
    if (const absl::Status printed = PrintHelpText(ProgramHelp()); !printed.ok()) return printed;
    return kExitAnswered;
  }
  if (name == "--version") {
    if (const absl::Status printed = Print(StrCat("memreplay ", kVersion, "\n")); !printed.ok()) {
      return printed;
    }
    return kExitAnswered;
  }
  std::vector<std::string_view> names = {"--help", "--version"};
  for (const Command& command : Commands()) {
    if (name == command.name) return command.run({{args.begin() + 1, args.end()}});
    names.push_back(command.name);
  }
  const std::string_view nearest = NearestWord(name, names);
  return absl::InvalidArgumentError(
      StrCat(name[0] == '-' ? "unknown flag " : "unknown command ", name,
             nearest.empty() ? std::string("; memreplay --help lists commands and flags")
                             : StrCat("; did you mean ", nearest, "?")));
}

// Takes --memory-limit, which every command has, out of the command line.
absl::Status TakeMemoryLimit(std::vector<std::string>* args) {
  // A CUDA driver and scripts map more memory than they touch.
  const bool is_ours = args->empty() || ((*args)[0] != "gpu" && (*args)[0] != "record" &&
                                         !(args->size() > 1 && (*args)[1] == "script") &&
                                         !((*args)[0] == "advise" && IsAboutScript(*args)));
  uint64_t limit = is_ours ? DefaultMemoryLimit() : 0;
  constexpr std::string_view kFlag = "--memory-limit";
  for (size_t at = 0; at < args->size() && (*args)[at] != "--"; ++at) {
    const std::string word = (*args)[at];
    if (!word.starts_with(kFlag) || (word.size() > kFlag.size() && word[kFlag.size()] != '=')) {
      continue;
    }
    const bool joined = word.size() > kFlag.size();
    if (!joined && at + 1 == args->size()) {
      return absl::InvalidArgumentError(StrCat(kFlag, " requires a value: SIZE"));
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
  memreplay::ReportShrunkFiles();
  memreplay::LetWritesFail();
  memreplay::EndWithParent();
  // The readers report in one line what Protobuf's parsers reject.
  google::protobuf::SetLogHandler(nullptr);
  return memreplay::Main(argc, argv);
}
