// Reads and writes flat JSON lines ("memsched-flat", docs/formats.md): schedules as the records of
// the schema, and recorded traces as those records with addresses, plus memreplay's own for
// effects, frames and the final state. Either reads back as the same Trace.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns true if `head`, the first bytes of a file, begins with a JSON object that has a string
// member "k". If `head` ends inside the object, only the members before its end count.
bool LooksLikeFlatJsonl(std::string_view head);

// Reads a file in one pass. O(bytes); memory is that of the Trace and one line. Error, to which the
// caller adds the file name: InvalidArgument, "line L, byte B: expected X, found Y", where B counts
// from the start of the (decompressed) file. Unknown keys become diagnostics at their byte.
absl::StatusOr<Trace> ReadFlatJsonl(ByteSource& source);

// Writes a trace. O(size of the trace), with memory for the stacks only. Texts and frames without
// references are not written. Errors: FailedPrecondition for a trace that is not well formed
// (CheckTrace), and those of the sink.
absl::Status WriteFlatJsonl(const Trace& trace, ByteSink& sink);

}  // namespace memreplay
