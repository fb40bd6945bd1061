// Runs a script with changes to it, on every rank of its job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "experiment/script_runner.h"
#include "proto/record.pb.h"
#include "record/run_program.h"
#include "sim/run/progress.h"

namespace memreplay {

// How changes are made: what a user would do, and what is done from outside.
struct MadeChange {
  std::vector<proto::Edit> edits;      // of the script's files
  std::vector<std::string> arguments;  // at the end of its command line
  std::vector<std::string> remedies;   // by name, from outside
};

// The runs of one script. Where it is a job of several ranks and none was chosen, each rank is run,
// and the one that needs most counts.
class ChangedRuns {
 public:
  using Remedies = std::vector<std::string>;  // by name; none: the unchanged script

  // All runs have `value` of `key`; 0: what the script has by itself. `progress` may be null.
  ChangedRuns(const RecordOptions& script, ScriptKey key, int64_t value, ScriptRunner* runner,
              ProgressSink* progress);

  // Makes these changes, from now on, as the proposals say.
  void SetProposals(std::vector<proto::Proposal> proposals) { proposals_ = std::move(proposals); }
  // Returns how changes are made together. Error: they edit the same words.
  absl::StatusOr<MadeChange> Make(const Remedies& remedies) const;

  // Runs the script with each of several lists of remedies, on a GPU without a limit. Returns one
  // answer for each; a run that failed has an `error`, and one that a signal ended is
  // `interrupted`.
  std::vector<proto::AdvisedRun> RunEach(absl::Span<const Remedies> remedies);
  // The same with these remedies and each of several values of the key.
  std::vector<proto::AdvisedRun> RunValues(const Remedies& remedies,
                                           absl::Span<const int64_t> values);
  // Runs the script on the GPU itself with these remedies and this PYTORCH_CUDA_ALLOC_CONF ("":
  // that of the environment). Returns its result, of several ranks that of the first which does not
  // fit, or else of the one that needs most. Error: the script fails there for another reason.
  absl::StatusOr<proto::ScriptRow> RunOnCard(const Remedies& remedies, const std::string& conf);

  // Returns the command line without a change, word by word.
  std::vector<std::string> Command() const { return CommandWords(base_); }
  size_t at_once() const { return runner_.at_once(); }
  bool has_ranks() const { return has_ranks_; }  // more than one of a job was run

 private:
  // With the changes, and `program` for the command line. Errors: those of Make().
  absl::StatusOr<ScriptRun> RunOf(const Remedies& remedies,
                                  const std::vector<std::string>& program) const;
  // A run on a GPU without a limit, whose snapshots are studied.
  struct Wanted {
    Remedies remedies;
    std::vector<std::string> program;
    std::string name;
  };
  // A run that could not be made has its error.
  std::vector<proto::AdvisedRun> RunStudied(absl::Span<const Wanted> wanted);
  void Show(std::string_view activity);

  RecordOptions given_;
  RecordOptions base_;  // with the value
  ScriptKey key_;
  ScriptRunner& runner_;
  ProgressSink* progress_;
  bool has_ranks_ = false;
  std::vector<proto::Proposal> proposals_;
};

}  // namespace memreplay
