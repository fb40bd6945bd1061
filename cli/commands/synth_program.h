// memreplay synth FILE: expands or checks a schedule.
#ifndef MEMREPLAY_CLI_COMMANDS_SYNTH_PROGRAM_H_
#define MEMREPLAY_CLI_COMMANDS_SYNTH_PROGRAM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/commands/command.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns OK if WriteProgram() can write to `path` and, if a report is printed too, that has
// standard output for itself.
absl::Status CheckProgramOutput(const std::string& path, bool is_reported,
                                const std::vector<std::string>& inputs);

// Writes `program` to `path` ("-" or empty is standard output) in the format `to`. If that is
// empty, the extension decides, and else it is flat JSON lines. Never overwrites `inputs`.
absl::Status WriteProgram(const Trace& program, const std::string& path, const std::string& to,
                          const std::vector<std::string>& inputs);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_COMMANDS_SYNTH_PROGRAM_H_
