// Writes counters of memory over time in the JSON form of Chrome traces, which
// ui.perfetto.dev and chrome://tracing open. Cannot be read back.
#ifndef MEMREPLAY_TRACE_FORMATS_PERFETTO_PERFETTO_WRITER_H_
#define MEMREPLAY_TRACE_FORMATS_PERFETTO_PERFETTO_WRITER_H_

#include "absl/status/status.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// For each device a process with a counter "memory" of two series: "requested",
// the bytes that the program asked for and did not ask to free yet, and
// "reserved", the bytes of all segments; and an instant for each mark,
// annotation and out-of-memory. What was live before the first event is reckoned
// back from the final state; without one both series start at 0. A program has
// no "reserved". Time is the events' own, else a microsecond an event.
// Errors: FailedPrecondition for a trace that is not well formed; the sink's.
absl::Status WritePerfetto(const Trace& trace, ByteSink& sink);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_PERFETTO_PERFETTO_WRITER_H_
