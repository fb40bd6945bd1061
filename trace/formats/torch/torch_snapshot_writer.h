// Writes the format of torch.cuda.memory._dump_snapshot(), so that torch's own tools
// (torch.cuda._memory_viz, the viewer at pytorch.org/memory_viz) load it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// Writes a pickle of protocol 4 of builtin containers, with keys in PyTorch's order. A trace that
// was read from a snapshot gets the keys of that layout; any other gets those of PyTorch 2.11.
// Frames and stacks are written once and shared.
//
// What a snapshot cannot represent is left out and described in `losses` (may be null), one
// sentence each: events that PyTorch does not record, ids, bytes that are not UTF-8. Values that a
// Trace does not keep get PyTorch's defaults (compile_context "N/A", user_metadata "", the pinned_*
// settings).
//
// O(size of the trace), with memory for the stacks and texts only. Errors: FailedPrecondition for a
// schedule (its handles are not addresses), a device above 1023 or a trace that is not well formed;
// and those of the sink.
absl::Status WriteTorchSnapshot(const Trace& trace, ByteSink& sink,
                                std::vector<std::string>* losses);

}  // namespace memreplay
