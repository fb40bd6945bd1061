// Reads op logs: each line is an operation; "id size" allocates, "id -size" frees.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns true if the first line of `head` is two integers, the first without a sign.
bool LooksLikeOpLog(std::string_view head);

// Reads a schedule on device 0 and stream 0. The id is the handle; sizes are in bytes and not 0.
// Spaces and tabs separate; empty lines are skipped. Error: InvalidArgument, "line L, byte B:
// expected X, found Y". O(bytes).
absl::StatusOr<Trace> ReadOpLog(ByteSource& source);

}  // namespace memreplay
