// Which changes to a script make it fit a GPU, found by running it with them.
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

// Adds to `run` what the snapshot of one of its processes says: the smallest device under the
// script's own settings and with expandable segments, in a run as the script is also under the best
// of a search; who holds the memory at the peak. Errors: ReplayWhatIf()'s.
absl::Status AddAdvisedProcess(const StudiedTrace& snapshot, const proto::RecordedProcess& process,
                               proto::AdvisedRun* run);

// Which GPU a script should fit, and what to try.
struct AdviceQuestion {
  std::string card;
  Bytes memory;                   // of the GPU, as CUDA reports the total
  std::vector<std::string> only;  // remedies to try; none: those that the script proposes
  size_t max_runs = 24;           // of pairs and triples
  size_t at_once = 1;             // runs that take the time of one
};

// Runs the script with each of several lists of remedies, on a GPU without a limit; an empty list
// is the script as it is. One answer each; a run that failed has an `error`. Error: interrupted.
using RunRemedies = std::function<absl::StatusOr<std::vector<proto::AdvisedRun>>(
    absl::Span<const std::vector<std::string>> remedies)>;
// Whether it fits the GPU itself with these remedies and this PYTORCH_CUDA_ALLOC_CONF ("": that of
// the environment). Error: the script fails there for another reason.
using ConfirmRemedies = std::function<absl::StatusOr<bool>(const std::vector<std::string>& remedies,
                                                           const std::string& conf)>;

// Each remedy is run alone; pairs and triples of them follow, cheapest first, until one fits that
// preserves what is computed. Settings cost no run. A combination is a row only if none of its
// parts fits without the others. Errors: the script fails as it is; interrupted.
absl::StatusOr<proto::Advice> AdviseScript(const AdviceQuestion& question, const RunRemedies& run,
                                           const ConfirmRemedies& confirm);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_ADVISE_SCRIPT_H_
