// Writes traces in any format that has a writer, for `convert`. To add a format, write a writer
// with this signature and add a row to the table in write_trace.cc.
#pragma once

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
  std::string_view name;         // as in Trace::format
  std::string_view extensions;   // of file names, the usual one first, separated by spaces
  std::string_view description;  // a few words for --help
  // Writes a trace without what the format cannot represent, which is described in `losses` (may be
  // null), one sentence each. Lossless formats never add one.
  absl::Status (*write)(const Trace& trace, ByteSink& sink, std::vector<std::string>* losses);
};

absl::Span<const TraceFormat> WritableFormats();
// Returns a format by name; null if there is none.
const TraceFormat* FindWritableFormat(std::string_view name);
// Returns the format with the longest extension that ends the file name; null if there is none.
const TraceFormat* WritableFormatOfPath(std::string_view path);

}  // namespace memreplay
