// Reads whole small files, plain or compressed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace memreplay {

// Returns the content of a file ("-" is standard input) of at most `most` bytes. Errors: those of
// ByteSource::Open(), ResourceExhausted for a larger file, a read that fails.
absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most);

// Returns whether the file begins as a report in JSON does. False for pipes, which cannot be read
// twice.
absl::StatusOr<bool> StartsLikeReport(const std::string& path);

}  // namespace memreplay
