// Writes a run as a table, as a picture for a paper, or as a trace for Perfetto.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "report/run/run_log.h"
#include "sim/category/meanings.h"
#include "trace/bytes/byte_sink.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Writes comma-separated columns (RFC 4180), a line per event: what it is about, and the four
// figures after it in bytes. A column has one type; a cell without a value is empty. `header`:
// begin with the names. O(events).
absl::Status WriteCsv(const Schedule& schedule, const RunLog& log, bool header, ByteSink& sink);

// Draws memory over the run: reserved as a line, active memory as areas by line of code, the twelve
// largest. Each column shows the moment at which most was active. O(events).
absl::Status WriteSvg(const Schedule& schedule, const RunLog& log, std::string_view title,
                      ByteSink& sink);

// Writes Perfetto's own format (proto/perfetto.proto): a process for the device, counters for the
// figures and for the active bytes of each category, a track of phases, instants for marks and out
// of memory; if `slices`, each allocation as a slice on a track of its line of code. Times never
// descend. O(events).
absl::Status WritePerfetto(const Schedule& schedule, const Meanings& meanings, const RunLog& log,
                           bool slices, ByteSink& sink);

}  // namespace memreplay
