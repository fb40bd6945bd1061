// What --help of a command says, as values, and what is made of it for shells and man.
#ifndef MEMREPLAY_CLI_HELP_TEXT_H_
#define MEMREPLAY_CLI_HELP_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// One flag of a command's help.
struct HelpFlag {
  std::string name;      // "output"
  std::string value;     // "PAGE"; "" of switches
  std::string help;      // one line
  char letter = 0;       // of its short form; 0: none
  bool repeats = false;  // may be given several times
  // "recorded|fresh" offers two; empty where anything may stand.
  std::vector<std::string> choices() const;
};

// The help of a command.
struct HelpText {
  std::string usage;        // "replay FILE... [flags]"
  std::string description;  // lines
  std::vector<HelpFlag> flags;
  // Of "completion bash|zsh", what may stand after the name; empty where files may.
  std::vector<std::string> operands() const;
};

// Scripts that tell a shell what to complete, and a page for man, of all commands.
struct CommandHelp {
  std::string name;
  std::string summary;
  HelpText help;
};
std::string BashCompletion(const std::vector<CommandHelp>& commands);
std::string ZshCompletion(const std::vector<CommandHelp>& commands);
std::string FishCompletion(const std::vector<CommandHelp>& commands);
std::string ManPage(const std::vector<CommandHelp>& commands, std::string_view version,
                    std::string_view program_help);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_HELP_TEXT_H_
