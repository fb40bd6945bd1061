// Computes the four figures of usage.h after each event of a logged run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/run/run_log.h"
#include "sim/observe/usage.h"
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

}  // namespace memreplay
