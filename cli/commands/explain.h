// Explains an error text, a log or standard input, for `explain` and `oom --message`.
#ifndef MEMREPLAY_CLI_COMMANDS_EXPLAIN_H_
#define MEMREPLAY_CLI_COMMANDS_EXPLAIN_H_

#include <string>

#include "absl/status/statusor.h"

namespace memreplay {

// Prints an explanation of `source`: a file of any length, plain or compressed, "-", or the text
// itself, which has a blank and is not the name of a file. Returns kExitBad. Errors: those of
// ByteSource::Open() and Explain().
absl::StatusOr<int> PrintExplanation(const std::string& source, bool json);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_COMMANDS_EXPLAIN_H_
