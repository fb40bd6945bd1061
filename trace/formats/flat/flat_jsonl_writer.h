// Writes flat JSON lines ("memsched-flat", docs/formats.md). A schedule becomes the records of the
// schema; a recorded trace becomes those records with addresses, plus memreplay's own for effects,
// frames and the final state. Either reads back as the same Trace.
#pragma once

#include "absl/status/status.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// Writes a trace. O(size of the trace), with memory for the stacks only. Texts and frames without
// references are not written. Errors: FailedPrecondition for a trace that is not well formed
// (CheckTrace), and those of the sink.
absl::Status WriteFlatJsonl(const Trace& trace, ByteSink& sink);

}  // namespace memreplay
