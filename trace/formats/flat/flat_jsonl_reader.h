// Reads flat JSON lines ("memsched-flat", docs/formats.md): programs, and
// recorded traces that our own writer wrote.
#ifndef MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_READER_H_
#define MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_READER_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

// True if `head`, the first bytes of a file, begins with a JSON object that has
// a string member "k". A head that ends inside the object is judged by the
// members before its end.
bool LooksLikeFlatJsonl(std::string_view head);

// Errors (the caller puts the file name before them): InvalidArgument,
// "line L, byte B: expected X, found Y"; B counts from
// the start of the (decompressed) file. Unknown keys become diagnostics at
// their byte. One pass, O(bytes); memory is that of the Trace and one line.
absl::StatusOr<Trace> ReadFlatJsonl(ByteSource& source);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_FLAT_FLAT_JSONL_READER_H_
