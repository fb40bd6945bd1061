// Computes the four figures of usage.h after each event of a logged run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "report/run/run_log.h"
#include "sim/category/meanings.h"
#include "sim/observe/usage.h"
#include "trace/bytes/byte_sink.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A cursor over a run's events that says what each is about. O(1) per event.
class RunWalk {
 public:
  // `log` must outlive this. The walk begins before the first event.
  RunWalk(const Schedule& schedule, const RunLog& log);

  // Moves to the next event; returns false at the end.
  bool Next();

  const Usage& usage() const { return usage_; }  // now
  size_t event() const { return moment_ - 1; }   // the last one
  size_t moment() const { return moment_; }
  EventKind kind() const { return log_.kinds[moment_ - 1]; }
  // Returns the position in log.allocations for kAlloc, kFree and kFreeCompleted; else kNever.
  uint32_t allocation() const { return allocation_; }
  // Returns the row of any other event; null for those three.
  const RunLog::Other* other() const { return other_; }
  // Returns microseconds since the first event of the file, never descending, or the position if
  // the file has no times.
  int64_t time_us() const { return time_; }
  bool has_times() const { return has_times_; }

 private:
  const RunLog& log_;
  const std::vector<int64_t>& times_;
  const bool has_times_;
  Usage usage_;
  size_t moment_ = 0;
  size_t allocations_ = 0, frees_ = 0, others_ = 0;
  uint32_t allocation_ = RunLog::kNever;
  const RunLog::Other* other_ = nullptr;
  int64_t time_ = 0;
};

// --- A run as a table, as a picture for a paper, or as a trace for Perfetto. ---

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
