// Runs a script with changes to it, on every rank of its job.
#ifndef MEMREPLAY_EXPERIMENT_CHANGED_RUNS_H_
#define MEMREPLAY_EXPERIMENT_CHANGED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "experiment/script_runner.h"
#include "proto/record.pb.h"
#include "record/run_program.h"
#include "sim/run/progress.h"

namespace memreplay {

// The runs of one script. Where it is a job of several ranks and none was chosen, each rank is run,
// and the one that needs most counts.
class ChangedRuns {
 public:
  using Remedies = std::vector<std::string>;  // by name; none: the unchanged script

  // All runs have `value` of `key`; 0: what the script has by itself. `progress` may be null.
  ChangedRuns(const RecordOptions& script, ScriptKey key, int64_t value, ScriptRunner* runner,
              ProgressSink* progress);

  // Runs the script with each of several lists of remedies, on a GPU without a limit. Returns one
  // answer for each; a run that failed has an `error`, and one that a signal ended is
  // `interrupted`.
  std::vector<proto::AdvisedRun> RunEach(absl::Span<const Remedies> remedies);
  // The same with these remedies and each of several values of the key.
  std::vector<proto::AdvisedRun> RunValues(const Remedies& remedies,
                                           absl::Span<const int64_t> values);
  // Returns whether the script fits on the GPU itself with these remedies and this
  // PYTORCH_CUDA_ALLOC_CONF ("": that of the environment). Error: the script fails there for
  // another reason.
  absl::StatusOr<bool> Fits(const Remedies& remedies, const std::string& conf);

  size_t at_once() const { return runner_.at_once(); }
  bool has_ranks() const { return has_ranks_; }  // more than one of a job was run

 private:
  ScriptRun RunOf(const Remedies& remedies) const;
  std::vector<proto::AdvisedRun> RunOneRank(absl::Span<const ScriptRun> runs);
  std::vector<proto::AdvisedRun> RunRanks(absl::Span<const ScriptRun> runs);
  void Show(std::string_view activity);

  RecordOptions given_;
  RecordOptions base_;  // with the value
  ScriptKey key_;
  ScriptRunner& runner_;
  ProgressSink* progress_;
  bool has_ranks_ = false;
};

}  // namespace memreplay

#endif  // MEMREPLAY_EXPERIMENT_CHANGED_RUNS_H_
