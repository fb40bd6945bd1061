// Our text format: one event a line, for people and tests (docs/formats.md).
//
//   memreplay-text 1
//   program
//   alloc #1 size=1024 stream=0 tag=activation name=h0.out
//   free_requested #1
#ifndef MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_FORMAT_H_
#define MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_FORMAT_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay {

inline constexpr std::string_view kTextMagic = "memreplay-text";
inline constexpr int kTextVersion = 1;

// True if the first word of `head` is "memreplay-text".
bool LooksLikeText(std::string_view head);

// Errors: InvalidArgument, "line L, byte B: expected X, found Y". O(bytes).
absl::StatusOr<Trace> ReadText(ByteSource& source);

// Errors: FailedPrecondition for a trace that is not well formed (CheckTrace);
// the sink's. Reads back as the same Trace. O(size of the trace).
absl::Status WriteText(const Trace& trace, ByteSink& sink);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_TEXT_TEXT_FORMAT_H_
