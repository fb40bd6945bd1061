// Whole small files, plain or compressed.
#ifndef MEMREPLAY_CLI_READ_TEXT_H_
#define MEMREPLAY_CLI_READ_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace memreplay {

// All of a file ("-": standard input) of at most `most` bytes. Errors as of
// ByteSource::Open(), ResourceExhausted (more than that), a read that fails.
absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most);

// Whether the file begins as a report in JSON does. Pipes do not: they cannot
// be read twice.
absl::StatusOr<bool> StartsLikeReport(const std::string& path);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_READ_TEXT_H_
