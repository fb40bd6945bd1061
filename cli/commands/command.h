// The subcommands of memreplay and their forms. A new one takes a file <name>_command.cc,
// a text help/<name>.txt, a declaration here and a row in commands.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/flags/flags.h"
#include "cli/flags/help_text.h"
#include "report/words/verdict.h"

namespace memreplay {

// What follows a command's name on the command line.
struct CommandLine {
  std::vector<std::string> args;
  HelpText* help = nullptr;  // where --help goes; null: to standard output
};

// Each function returns the exit status. An error is one line for stderr and means kExitUnusable.
absl::StatusOr<int> RunInspect(const CommandLine& line);
absl::StatusOr<int> RunReplay(const CommandLine& line);
absl::StatusOr<int> RunExplain(const CommandLine& line);
absl::StatusOr<int> RunOom(const CommandLine& line);
absl::StatusOr<int> RunDiff(const CommandLine& line);
absl::StatusOr<int> RunConvert(const CommandLine& line);
absl::StatusOr<int> RunSweep(const CommandLine& line);
absl::StatusOr<int> RunSweepScript(const CommandLine& line);
absl::StatusOr<int> RunAdvise(const CommandLine& line);
absl::StatusOr<int> RunAdviseScript(const CommandLine& line);
absl::StatusOr<int> RunAdviseRecording(const CommandLine& line);
absl::StatusOr<int> RunFit(const CommandLine& line);
absl::StatusOr<int> RunFitScript(const CommandLine& line);
absl::StatusOr<int> RunGpu(const CommandLine& line);
absl::StatusOr<int> RunLint(const CommandLine& line);
absl::StatusOr<int> RunReport(const CommandLine& line);
absl::StatusOr<int> RunRecord(const CommandLine& line);
absl::StatusOr<int> RunSynth(const CommandLine& line);
absl::StatusOr<int> RunSynthSchedule(const CommandLine& line);
absl::StatusOr<int> RunFleet(const CommandLine& line);
absl::StatusOr<int> RunMcp(const CommandLine& line);
absl::StatusOr<int> RunCompletion(const CommandLine& line);

// A command of the program, or a form of one, which has two words; kCommands has one row for each.
struct Command {
  std::string_view name;  // "fit", "fit script"
  std::string_view summary;
  absl::StatusOr<int> (*run)(const CommandLine& line);
  bool is_common = false;  // in the short help
  bool is_python = false;  // run by a Python interpreter, its --help too
  // Starts a script or a driver, which map more memory than they touch: no memory limit by default.
  bool maps_much = false;
  // Returns the form that these words mean without its second word; "": none. Null: likewise.
  std::string_view (*form)(absl::Span<const std::string> args) = nullptr;

  bool is_form() const { return name.find(' ') != name.npos; }
  // Whether this is a form of `command`.
  bool is_form_of(const Command& command) const {
    return name.starts_with(command.name) && name.substr(command.name.size()).starts_with(' ');
  }
};
absl::Span<const Command> Commands();
const Command* FindCommand(std::string_view name);  // null: there is none

// What `advise` and `synth` are about (Command::form).
std::string_view FormOfAdvise(absl::Span<const std::string> args);
std::string_view FormOfSynth(absl::Span<const std::string> args);

// The argument of a script whose value `advise` varies: --batch_size=64, --batch_size=?, or both.
struct AdviseKey {
  std::string name;            // "--batch_size"; "": none was given
  int64_t value = 0;           // 64; 0: none was given
  bool finds_largest = false;  // "?" was given
};

// Takes each --NAME=NUMBER and --NAME=? that is no flag of the command.
void AddAdviseKey(FlagSet* flags, AdviseKey* key);

// Prints an explanation of `source`: a file of any length, plain or compressed, "-", or the text
// itself, which has a blank and is not the name of a file. Returns kExitBad. Errors: those of
// ByteSource::Open() and Explain().
absl::StatusOr<int> PrintExplanation(const std::string& source, bool json);

// Answers --card list.
bool IsCardList(std::string_view card);
absl::StatusOr<int> ListCards(bool json);

// Returns the text of "memreplay --help --all", or that of "memreplay --help".
std::string ProgramHelp(bool all);

// Answers --help: describes the flags, or prints them with `more` below.
absl::StatusOr<int> ShowHelp(const CommandLine& line, const FlagSet& flags,
                             std::string_view more = "");

}  // namespace memreplay
