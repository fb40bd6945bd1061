// The subcommands of memreplay. To add one: a file <name>_command.cc, a
// declaration here, a row in commands.cc.
#ifndef MEMREPLAY_CLI_COMMAND_H_
#define MEMREPLAY_CLI_COMMAND_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace memreplay {

// Exit statuses of the program.
inline constexpr int kExitAnswered = 0;
inline constexpr int kExitBad = 1;       // the answer is bad
inline constexpr int kExitUnusable = 2;  // the input or the call is

// Each takes what follows its name on the command line and returns the exit
// status. An error is one line for stderr and means kExitUnusable.
absl::StatusOr<int> RunInspect(absl::Span<const std::string> args);
absl::StatusOr<int> RunReplay(absl::Span<const std::string> args);
absl::StatusOr<int> RunExplain(absl::Span<const std::string> args);
absl::StatusOr<int> RunOom(absl::Span<const std::string> args);
absl::StatusOr<int> RunDiff(absl::Span<const std::string> args);
absl::StatusOr<int> RunConvert(absl::Span<const std::string> args);
absl::StatusOr<int> RunSweep(absl::Span<const std::string> args);
absl::StatusOr<int> RunFit(absl::Span<const std::string> args);
// `fit script` and `sweep script`: what follows the two words.
absl::StatusOr<int> RunFitScript(absl::Span<const std::string> args);
absl::StatusOr<int> RunSweepScript(absl::Span<const std::string> args);
absl::StatusOr<int> RunGpu(absl::Span<const std::string> args);
absl::StatusOr<int> RunLint(absl::Span<const std::string> args);
absl::StatusOr<int> RunReport(absl::Span<const std::string> args);
absl::StatusOr<int> RunRecord(absl::Span<const std::string> args);
absl::StatusOr<int> RunSynth(absl::Span<const std::string> args);
absl::StatusOr<int> RunFleet(absl::Span<const std::string> args);
absl::StatusOr<int> RunCompletion(absl::Span<const std::string> args);

struct Command {
  std::string_view name;
  std::string_view summary;
  absl::StatusOr<int> (*run)(absl::Span<const std::string> args);
  bool is_python = false;  // run by a Python interpreter, its --help too
};
absl::Span<const Command> Commands();

// Of "memreplay --help".
std::string ProgramHelp();

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_COMMAND_H_
