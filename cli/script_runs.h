// Runs a script several times on simulated GPUs, for `fit script`, `sweep script` and `advise`.
#ifndef MEMREPLAY_CLI_SCRIPT_RUNS_H_
#define MEMREPLAY_CLI_SCRIPT_RUNS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/stop_signal.h"
#include "proto/record.pb.h"
#include "record/run_cache.h"
#include "record/run_program.h"

namespace memreplay {

// One run; options.program already contains the value.
struct ScriptRun {
  RecordOptions options;
  double value = 0;
  std::string name;  // for errors: "64", "checkpoint:Block"
};

// Runs scripts, as many at once as there are jobs, and keeps their answers in CacheFolder()/runs
// (record/run_cache.h).
class ScriptRunner {
 public:
  // With `jobs` 0 there are as many as cores, but at most 4.
  ScriptRunner(size_t jobs, bool use_cache);

  struct Answer {
    proto::RecordReport report;
    bool cached = false;
  };
  // Adds to the answer of a run while its snapshots still exist; kept with the answer.
  using Finish = std::function<absl::Status(proto::RecordReport* report)>;

  // Returns one answer per run, in order. Errors: a run that cannot be started, that fails for
  // another reason than memory (which its output may give) or that used no GPU, the errors of
  // `finish`, Ctrl-C.
  std::vector<absl::StatusOr<Answer>> RunEach(absl::Span<const ScriptRun> runs,
                                              const Finish& finish = nullptr);
  // Returns one row per run, in order. Errors: those of RunEach().
  std::vector<absl::StatusOr<proto::ScriptRow>> Run(absl::Span<const ScriptRun> runs);

  size_t jobs() const { return jobs_; }
  int made() const { return made_; }
  int from_cache() const { return from_cache_; }
  // What Ctrl-C or another signal ended the runs with.
  const StopSignal& stop() const { return stop_; }

 private:
  absl::StatusOr<Answer> RunOne(const ScriptRun& run, const std::string& folder,
                                const Finish& finish) const;

  size_t jobs_;
  bool use_cache_;
  RunCache cache_;
  int made_ = 0;
  int from_cache_ = 0;
  StopSignal stop_{StopSignal::kNoteAll};  // a second one kills the scripts that ignore the first
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

#endif  // MEMREPLAY_CLI_SCRIPT_RUNS_H_
