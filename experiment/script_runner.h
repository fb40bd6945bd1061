// The seam below every experiment: a script that runs with a change, and what came of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/record.pb.h"
#include "record/run_program.h"
#include "sim/run/progress.h"

namespace memreplay {

// One run; options.program already contains the value.
struct ScriptRun {
  RecordOptions options;
  std::string name;         // for errors: "64"
  bool is_studied = false;  // its report gets `advised` from its snapshots
};

// Runs scripts, and counts the runs.
class ScriptRunner {
 public:
  struct Answer {
    proto::RecordReport report;
    bool cached = false;  // from an earlier run of the same script
  };
  using Answers = std::vector<absl::StatusOr<Answer>>;

  virtual ~ScriptRunner() = default;

  // Returns one answer per run, in order. Errors: a run that cannot be started, that fails for
  // another reason than memory (which its output may give) or that used no GPU, or whose snapshots
  // cannot be studied; Cancelled, if a signal ended it.
  // `progress`, which may be null, is shown how many have ended.
  Answers Run(absl::Span<const ScriptRun> runs, ProgressSink* progress = nullptr);
  // Returns how many runs take as long as one.
  virtual size_t at_once() const = 0;
  // Returns the signal that ended the runs, "SIGINT"; "" if there was none.
  virtual std::string_view stopped_by() const = 0;

  // Puts the number of runs and the time since this object was made into an answer.
  template <typename Report>
  void AddCounts(Report* report) const {
    report->set_runs(made_);
    report->set_from_cache(from_cache_);
    report->set_seconds(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
  }

 private:
  virtual Answers RunAll(absl::Span<const ScriptRun> runs, ProgressSink* progress) = 0;

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  int made_ = 0;
  int from_cache_ = 0;
};

// The argument whose value varies: "--batch_size", or "?".
struct ScriptKey {
  std::string name;
  // Whether a word is "?" or ends in "=?", for the value.
  bool IsIn(const std::vector<std::string>& program) const;
  // Returns the words with the value in the place of each "?", or as --NAME=VALUE at the end.
  std::vector<std::string> WordsWith(const std::vector<std::string>& program,
                                     std::string_view value) const;
};

}  // namespace memreplay
