// Writes traces in any format there is a writer for: the engine of `convert`. To
// add one, write a writer with this signature and add a row to the table in
// write_trace.cc.
#ifndef MEMREPLAY_TRACE_FORMATS_WRITE_TRACE_H_
#define MEMREPLAY_TRACE_FORMATS_WRITE_TRACE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "trace/bytes/byte_sink.h"
#include "trace/value/trace.h"

namespace memreplay {

// A format that traces can be written in.
struct TraceFormat {
  std::string_view name;         // as Trace::format says it
  std::string_view extensions;   // of file names, the usual one first, spaces between
  std::string_view description;  // a few words for --help
  // What the format cannot hold is left out, a sentence each in `losses` (may be
  // null). Formats that hold everything never add one.
  absl::Status (*write)(const Trace& trace, ByteSink& sink, std::vector<std::string>* losses);
};

absl::Span<const TraceFormat> WritableFormats();
// Null if there is none.
const TraceFormat* FindWritableFormat(std::string_view name);
// The format whose extension the file name ends in; the longest such extension
// wins. Null if there is none.
const TraceFormat* WritableFormatOfPath(std::string_view path);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_WRITE_TRACE_H_
