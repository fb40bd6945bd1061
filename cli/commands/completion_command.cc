// memreplay completion bash|zsh|fish|man
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"
#include "cli/io/output.h"
#include "report/words/version.h"
#include "synth/models.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::StatusOr<std::vector<CommandHelp>> AllHelp() {
  std::vector<CommandHelp> all;
  for (const Command& command : Commands()) {
    CommandHelp& row = all.emplace_back();
    row.name = command.name;
    row.summary = command.summary;
    if (command.is_python) continue;
    RETURN_IF_ERROR(command.run({{"--help"}, &row.help}).status());
  }
  return all;
}

// Gives a command that is several forms, by the words that follow, the flags of them all.
void AddFlagsOfForms(std::vector<CommandHelp>* all) {
  for (CommandHelp& row : *all) {
    const Command* const command = FindCommand(row.name);
    if (command->form == nullptr) continue;
    for (const CommandHelp& other : *all) {
      if (!FindCommand(other.name)->is_form_of(*command)) continue;
      for (const HelpFlag& flag : other.help.flags) {
        std::vector<HelpFlag>& own = row.help.flags;
        const bool is_known =
            absl::c_any_of(own, [&](const HelpFlag& each) { return each.name == flag.name; });
        if (!is_known) own.push_back(flag);
      }
    }
  }
}

// Adds the models that a command accepts as forms of it, with their keys.
absl::Status AddModels(std::vector<CommandHelp>* all) {
  for (const Command& command : Commands()) {
    const auto row = absl::c_find_if(*all, [&](const CommandHelp& each) {
      return each.name == command.name && absl::StrContains(each.help.usage, "MODEL");
    });
    if (row == all->end()) continue;
    for (const synth::ModelKind& model : synth::ModelKinds()) {
      CommandHelp form{StrCat(command.name, " ", model.name), "a training run, by its keys", {}};
      RETURN_IF_ERROR(command.run({{std::string(model.name), "--help"}, &form.help}).status());
      all->push_back(std::move(form));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunCompletion(const CommandLine& line) {
  FlagSet flags("completion bash|zsh|fish|man", kCompletionHelp);
  const absl::StatusOr<std::vector<std::string>> words = flags.Parse(line.args);
  if (!words.ok()) return Within("completion", words.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  const std::string kind = words->size() == 1 ? words->front() : "";
  if (kind != "bash" && kind != "zsh" && kind != "fish" && kind != "man") {
    return absl::InvalidArgumentError(
        "completion: expected bash, zsh, fish or man; see memreplay completion --help");
  }
  ASSIGN_OR_RETURN(std::vector<CommandHelp> commands, AllHelp());
  if (kind != "man") {
    AddFlagsOfForms(&commands);
    RETURN_IF_ERROR(AddModels(&commands));
  }
  RETURN_IF_ERROR(Print(kind == "bash"   ? BashCompletion(commands)
                        : kind == "zsh"  ? ZshCompletion(commands)
                        : kind == "fish" ? FishCompletion(commands)
                                         : ManPage(commands, kVersion, ProgramHelp(/*all=*/true))));
  return kExitAnswered;
}

}  // namespace memreplay
