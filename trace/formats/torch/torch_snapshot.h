// Reads the output of torch.cuda.memory._dump_snapshot() and its C++ counterpart, from every
// PyTorch since 2.0: a dict of segments, traces and settings, or a bare list of segments; as a
// pickle, as the page with the pickle in it that torch.cuda._memory_viz writes, or, from json.dump,
// as JSON. Writes it so that torch's own tools (torch.cuda._memory_viz, the viewer at
// pytorch.org/memory_viz) load it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

// Return whether a file with these first bytes (4 KiB suffice) is a snapshot.
bool IsSnapshotPickle(std::string_view head);
bool IsSnapshotJson(std::string_view head);
bool IsSnapshotPage(std::string_view head);

// Read a snapshot in one pass. O(bytes). Trace entries become 48 bytes each while they are read and
// their stacks are shared, so memory stays below the size of large files.
//
// Unknown keys, actions that are not replayed and inconsistent segments become diagnostics. Errors
// (InvalidArgument; they name `path` and the byte offset or the trace entry): anything that is not
// plain data, a memory count that is negative, fractional or beyond 64 bits, a missing field. JSON
// integers are exact up to 64 bits.
absl::StatusOr<Trace> ReadSnapshotPickle(ByteSource& source, const std::string& path);
// Reads the same with a second thread that shares `share` bytes at a time; 0: with one thread. See
// ReadPickle(). The above takes kPickleShare where there are two processors.
absl::StatusOr<Trace> ReadSnapshotPickle(ByteSource& source, const std::string& path, size_t share);
absl::StatusOr<Trace> ReadSnapshotJson(ByteSource& source, const std::string& path);
// Reads the first snapshot of a page. Its byte offsets are those of the pickle. Memory: also the
// pickle, and the page if that is compressed.
absl::StatusOr<Trace> ReadSnapshotPage(ByteSource& source, const std::string& path);

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
