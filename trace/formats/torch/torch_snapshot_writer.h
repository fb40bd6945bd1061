// Writes what torch.cuda.memory._dump_snapshot() writes, so that torch's own
// tools (torch.cuda._memory_viz, the viewer at pytorch.org/memory_viz) load it.
#ifndef MEMREPLAY_TRACE_FORMATS_TORCH_TORCH_SNAPSHOT_WRITER_H_
#define MEMREPLAY_TRACE_FORMATS_TORCH_TORCH_SNAPSHOT_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// A pickle of protocol 4 of builtin containers, keys in PyTorch's order. A trace
// that was read from a snapshot gets the keys that its layout had; any other
// those of PyTorch 2.11. Frames and stacks are written once and shared.
//
// What a snapshot cannot hold is left out and named in `losses` (may be null),
// one sentence each: events that PyTorch does not record, ids, bytes that are
// not UTF-8. Values that a Trace does not keep are PyTorch's defaults
// (compile_context "N/A", user_metadata "", the pinned_* settings).
//
// Errors: FailedPrecondition for a program (its handles are no addresses), a
// device above 1023, a trace that is not well formed; the sink's. O(size of the
// trace); memory for the stacks and texts only.
absl::Status WriteTorchSnapshot(const Trace& trace, ByteSink& sink,
                                std::vector<std::string>* losses);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_TORCH_TORCH_SNAPSHOT_WRITER_H_
