// An error text, a log or standard input, explained: what `explain` and `oom --message` share.
#ifndef MEMREPLAY_CLI_EXPLAIN_H_
#define MEMREPLAY_CLI_EXPLAIN_H_

#include <string>

#include "absl/status/statusor.h"

namespace memreplay {

// Prints what `source` says: a file, plain or compressed and of any length, "-", or the text
// itself, which has a blank and is no file's name. Returns kExitBad. Errors: ByteSource::Open()'s,
// Explain()'s.
absl::StatusOr<int> PrintExplanation(const std::string& source, bool json);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_EXPLAIN_H_
