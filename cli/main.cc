// memreplay: dispatches to the subcommands.
#include <google/protobuf/stubs/logging.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "cli/commands/command.h"
#include "cli/flags/flags.h"
#include "cli/io/guards.h"
#include "cli/io/output.h"
#include "report/words/version.h"
#include "trace/formats/open_trace.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns the row whose name is the first words of `args`, null if there is none.
const Command* RowOf(absl::Span<const std::string> args) {
  const Command* form = args.size() > 1 ? FindCommand(StrCat(args[0], " ", args[1])) : nullptr;
  return form != nullptr ? form : FindCommand(args[0]);
}

// Error: the word after a command is close to that of one of its forms, and no file.
absl::Status CheckForm(const Command& command, absl::Span<const std::string> args) {
  if (args.empty() || access(args[0].c_str(), F_OK) == 0) return absl::OkStatus();
  std::vector<std::string_view> words;
  for (const Command& row : Commands()) {
    if (row.is_form_of(command)) words.push_back(row.name.substr(command.name.size() + 1));
  }
  const std::string hint = DidYouMean(args[0], words, StrCat(command.name, " "));
  if (hint.empty()) return absl::OkStatus();
  return InvalidArgument("there is neither a file nor a form ", command.name, " ", args[0], hint);
}

absl::StatusOr<int> Dispatch(absl::Span<const std::string> all) {
  bool is_version = false, is_all = false;
  FlagSet flags("COMMAND [ARGUMENTS]", "");
  flags.AddSwitch("version", &is_version, "");
  flags.AddSwitch("all", &is_all, "");  // of --help
  ASSIGN_OR_RETURN(std::vector<std::string> words, flags.ParseLeading(all));
  std::vector<std::string>& args = words;
  // "help COMMAND" is "COMMAND --help".
  const bool is_help = !args.empty() && args[0] == "help";
  if (is_help) args.erase(args.begin());
  const bool shows_all = absl::c_find(all, "--all") != all.end();
  if (flags.help_requested() || (is_help && (args.empty() || args[0] == "--all"))) {
    RETURN_IF_ERROR(PrintHelpText(ProgramHelp(shows_all)));
    return kExitAnswered;
  }
  if (is_version) {
    RETURN_IF_ERROR(Print(StrCat("memreplay ", kVersion, "\n")));
    return kExitAnswered;
  }
  if (args.empty()) {
    return absl::InvalidArgumentError("no command given; memreplay --help lists the commands");
  }
  const Command* command = RowOf(args);
  if (command == nullptr && access(args[0].c_str(), F_OK) == 0) {
    args.insert(args.begin(), IsTextOfNoFormat(args[0]) ? "explain" : "inspect");
    command = RowOf(args);
  }
  if (command == nullptr) {
    std::vector<std::string_view> names;
    for (const Command& row : Commands()) names.push_back(row.name);
    return InvalidArgument(
        "unknown command ", args[0],
        DidYouMean(args[0], names, "", "; memreplay --help lists commands and flags"));
  }
  args.erase(args.begin(), args.begin() + (command->is_form() ? 2 : 1));
  RETURN_IF_ERROR(CheckForm(*command, args));
  if (is_help) args.insert(args.begin(), "--help");
  const std::string_view form = command->form == nullptr ? "" : command->form(args);
  if (!form.empty()) command = FindCommand(form);
  if (!flags.IsGiven("memory-limit")) {
    RETURN_IF_ERROR(LimitMemory(command->maps_much ? 0 : DefaultMemoryLimit()));
  }
  return command->run({args});
}

int Main(int argc, char** argv) {
  const absl::StatusOr<int> status = Dispatch(std::vector<std::string>(argv + 1, argv + argc));
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
