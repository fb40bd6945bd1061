// Runs scripts on simulated GPUs while recording them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "experiment/script_runner.h"
#include "record/run_cache.h"
#include "record/stop_signal.h"

namespace memreplay {

// Runs scripts, as many at once as there are jobs, and keeps their answers in CacheFolder()/runs
// (record/run_cache.h).
class RecordedRuns final : public ScriptRunner {
 public:
  // With `jobs` 0 there are as many as cores, but at most 4.
  RecordedRuns(size_t jobs, bool use_cache);

  size_t at_once() const override { return jobs_; }
  std::string_view stopped_by() const override { return stop_.name(); }
  int exit_status() const { return stop_.exit_status(); }  // of what stopped them

 private:
  Answers RunAll(absl::Span<const ScriptRun> runs, ProgressSink* progress) override;
  absl::StatusOr<Answer> RunOne(const ScriptRun& run, const std::string& folder) const;

  size_t jobs_;
  bool use_cache_;
  RunCache cache_;
  StopSignal stop_{StopSignal::kNoteAll};  // a second one kills the scripts that ignore the first
};

}  // namespace memreplay
