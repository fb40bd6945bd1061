// The flags of a run on a simulated GPU, which record, fit script and sweep script share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/flags.h"
#include "record/run_program.h"
#include "trace/value/units.h"

namespace memreplay {

// Reads a size, or the name of a GPU, which stands for its total memory.
absl::StatusOr<Bytes> ParseMemory(std::string_view text);

// Registers all flags except --card and those about output.
void AddRecordFlags(RecordOptions* run, FlagSet* flags);

// Sets the script and its arguments, and the environment variables that are assigned before it:
// A=B.
void SetProgram(std::vector<std::string> words, RecordOptions* run);

// Returns whether the words of a script have --NAME or --NAME=VALUE; `flag` is "--NAME".
bool HasFlag(const std::vector<std::string>& program, std::string_view flag);

// The error of a command that requires --card, where none stands before `program`.
absl::Status NoCard(const std::vector<std::string>& program);

// Error: InvalidArgument, for a name that is no change to scripts (docs/advise.md), with the
// nearest that is one. `flag` is the flag that they were given with.
absl::Status CheckRemedies(std::string_view flag, const std::vector<std::string>& names);

// Errors: flags that contradict each other, values out of range, no script.
absl::Status CheckRecordCall(const RecordOptions& run);

}  // namespace memreplay
