// The subcommands of memreplay. A new one takes a file <name>_command.cc, a declaration here
// and a row in commands.cc.
#ifndef MEMREPLAY_CLI_COMMAND_H_
#define MEMREPLAY_CLI_COMMAND_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/flags.h"
#include "cli/help_text.h"

namespace memreplay {

// Exit statuses of the program.
inline constexpr int kExitAnswered = 0;
inline constexpr int kExitBad = 1;       // there is an answer, and something is wrong
inline constexpr int kExitUnusable = 2;  // the input or the command line is unusable

// What follows a command's name on the command line.
struct CommandLine {
  std::vector<std::string> args;
  HelpText* help = nullptr;  // where --help goes; null: to standard output

  CommandLine From(size_t first) const {  // without the words before that
    return {{args.begin() + static_cast<ptrdiff_t>(first), args.end()}, help};
  }
};

// Each function returns the exit status. An error is one line for stderr and means kExitUnusable.
absl::StatusOr<int> RunInspect(const CommandLine& line);
absl::StatusOr<int> RunReplay(const CommandLine& line);
absl::StatusOr<int> RunExplain(const CommandLine& line);
absl::StatusOr<int> RunOom(const CommandLine& line);
absl::StatusOr<int> RunDiff(const CommandLine& line);
absl::StatusOr<int> RunConvert(const CommandLine& line);
absl::StatusOr<int> RunSweep(const CommandLine& line);
absl::StatusOr<int> RunAdvise(const CommandLine& line);
// Runs `advise` on recordings.
absl::StatusOr<int> RunAdviseRecording(const CommandLine& line);
absl::StatusOr<int> RunFit(const CommandLine& line);
// Run `fit script` and `sweep script`; `line` is what follows these two words.
absl::StatusOr<int> RunFitScript(const CommandLine& line);
absl::StatusOr<int> RunSweepScript(const CommandLine& line);
// Returns whether the words after `advise` name a script: one of them is "--" or "NAME.py".
bool IsAboutScript(absl::Span<const std::string> args);
// Runs `advise` on a script.
absl::StatusOr<int> RunAdviseScript(const CommandLine& line);
absl::StatusOr<int> RunGpu(const CommandLine& line);
absl::StatusOr<int> RunLint(const CommandLine& line);
absl::StatusOr<int> RunReport(const CommandLine& line);
absl::StatusOr<int> RunRecord(const CommandLine& line);
absl::StatusOr<int> RunSynth(const CommandLine& line);
absl::StatusOr<int> RunFleet(const CommandLine& line);
absl::StatusOr<int> RunMcp(const CommandLine& line);
absl::StatusOr<int> RunCompletion(const CommandLine& line);

// A command of the program; kCommands has one row for each.
struct Command {
  std::string_view name;
  std::string_view summary;
  absl::StatusOr<int> (*run)(const CommandLine& line);
  bool is_python = false;         // run by a Python interpreter, its --help too
  bool takes_parameters = false;  // --set NAME=N, of a schedule

  // The flags that are taken out of the command line before `run` reads its own: those of every
  // command, which ProgramHelp() describes.
  std::vector<HelpFlag> common_flags() const;
};
absl::Span<const Command> Commands();

// Returns the text of "memreplay --help".
std::string ProgramHelp();

// Answers --help: describes the flags, or prints them with `more` below.
absl::StatusOr<int> ShowHelp(const CommandLine& line, const FlagSet& flags,
                             std::string_view more = "");

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_COMMAND_H_
