// Finds the changes with which a script fits a GPU, by running it with them.
#ifndef MEMREPLAY_REPORT_ASK_ADVISE_SCRIPT_H_
#define MEMREPLAY_REPORT_ASK_ADVISE_SCRIPT_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/record.pb.h"
#include "proto/report.pb.h"
#include "sim/study/study_trace.h"
#include "trace/value/units.h"

namespace memreplay {

// Adds to `run` what the snapshot of one of its processes says: who holds the memory at the peak,
// and the smallest device under the script's own settings, with expandable segments, and, in a run
// of the unchanged script, under the best settings of a search. Errors: ReplayWhatIf()'s.
absl::Status AddAdvisedProcess(const StudiedTrace& snapshot, const proto::RecordedProcess& process,
                               proto::AdvisedRun* run);

// Merges the run of another rank of the same job into `run`: the rank that needs most counts.
// Settings that only one of them was replayed under are left out.
void MergeRank(const proto::AdvisedRun& other, proto::AdvisedRun* run);

// A GPU that a script should fit, and what to try.
struct AdviceQuestion {
  std::string card;
  Bytes memory;                   // of the GPU, as CUDA reports the total
  std::vector<std::string> only;  // remedies to try; empty: those that the script proposes
  size_t max_runs = 24;           // of pairs and triples, and again of values of `key`
  size_t at_once = 1;             // runs that take as long as one
  std::string key;                // an argument of the script, "--batch_size"
  int64_t value = 0;              // of `key`, in all runs; 0: what the script has by itself
  bool finds_largest = false;     // whether to find the largest value of `key` that fits
};

// Runs the script with each of several lists of remedies, on a GPU without a limit; an empty list
// is the unchanged script. Returns one answer for each; a run that failed has an `error`, and one
// that a signal ended is `interrupted`. Error: Cancelled, if all of them are.
using RunRemedies = std::function<absl::StatusOr<std::vector<proto::AdvisedRun>>(
    absl::Span<const std::vector<std::string>> remedies)>;
// Runs the script with these remedies and each of several values of AdviceQuestion::key.
using RunValues = std::function<absl::StatusOr<std::vector<proto::AdvisedRun>>(
    const std::vector<std::string>& remedies, absl::Span<const int64_t> values)>;
// Returns whether the script fits on the GPU itself with these remedies and this
// PYTORCH_CUDA_ALLOC_CONF ("": that of the environment). Error: the script fails there for another
// reason.
using ConfirmRemedies = std::function<absl::StatusOr<bool>(const std::vector<std::string>& remedies,
                                                           const std::string& conf)>;

// Runs each remedy alone, then pairs and triples of them, cheapest first, until one fits that
// preserves what is computed. Settings do not cost a run. A combination is a row only if none of
// its parts fits without the others. For the unchanged script and for the rows, from the first on,
// it looks for the largest value of the question's key as long as runs are left. After an
// interruption it runs nothing more, and a note says what is missing. Errors: the unchanged script
// fails; Cancelled, if its run is interrupted.
absl::StatusOr<proto::Advice> AdviseScript(const AdviceQuestion& question, const RunRemedies& run,
                                           const ConfirmRemedies& confirm,
                                           const RunValues& run_values = nullptr);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_ADVISE_SCRIPT_H_
