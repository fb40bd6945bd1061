// Writes flat JSON lines ("memsched-flat", docs/formats.md). A program becomes
// the records of the schema; a recorded trace becomes those records with
// addresses, plus our own for effects, frames and the final state. Either reads
// back as the same Trace.
#ifndef MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_WRITER_H_
#define MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_WRITER_H_

#include "absl/status/status.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// Errors: FailedPrecondition for a trace that is not well formed (CheckTrace),
// and the sink's. O(size of the trace), memory for the stacks only. Texts and
// frames that nothing refers to are not written.
absl::Status WriteFlatJsonl(const Trace& trace, ByteSink& sink);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_WRITER_H_
