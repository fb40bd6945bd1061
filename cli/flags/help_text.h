// The help of commands as values, and the completion scripts and man page made from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// One flag of a command's help.
struct HelpFlag {
  std::string name;      // "output"
  std::string value;     // "PAGE"; "" for switches
  std::string help;      // one line
  char letter = 0;       // of its short form; 0: none
  bool repeats = false;  // may be given several times
  // Returns the two words of "recorded|fresh"; nothing where any value is possible.
  std::vector<std::string> choices() const;
};

// The help of a command.
struct HelpText {
  std::string usage;        // "replay FILE... [flags]"
  std::string description;  // lines
  std::vector<HelpFlag> flags;
  // Returns the words that may follow the name, such as "bash" and "zsh" of "completion bash|zsh";
  // nothing where files may follow.
  std::vector<std::string> operands() const;
};

// The help of one command or form, from which completion scripts and the man page are made.
struct CommandHelp {
  std::string name;  // "fit", "fit script"
  std::string summary;
  HelpText help;
  bool is_form() const { return name.find(' ') != name.npos; }
};
std::string BashCompletion(const std::vector<CommandHelp>& commands);
std::string ZshCompletion(const std::vector<CommandHelp>& commands);
std::string FishCompletion(const std::vector<CommandHelp>& commands);
std::string ManPage(const std::vector<CommandHelp>& commands, std::string_view version,
                    std::string_view program_help);

}  // namespace memreplay
