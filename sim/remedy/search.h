// Which remedies, alone or together, lower the peak of a recording or make it fit.
#ifndef MEMREPLAY_SIM_REMEDY_SEARCH_H_
#define MEMREPLAY_SIM_REMEDY_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/passes.h"
#include "sim/remedy/remedies.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "trace/value/units.h"

namespace memreplay {

// What a replay with some remedies comes to, on an unlimited device unless that would not fit.
struct RemedyRun {
  std::vector<size_t> remedies;  // in RemedySearch::remedies, ascending; empty: as it is
  Bytes peak_reserved;           // on an unlimited device
  Bytes peak_allocated;
  Bytes enough;       // a device with this much is large enough; a smaller one may be
  bool fits = false;  // with a goal: memory does not run out there
  double cost = 0;    // the smaller the cheaper
};

// Which changes were tried, and what came of them.
struct RemedySearch {
  PassFacts facts;
  std::vector<Remedy> remedies;  // those tried, the cheapest first
  std::optional<Bytes> goal;     // what PyTorch may reserve
  RemedyRun as_is;
  std::vector<RemedyRun> runs;  // alone, in the order of `remedies`; then together
  size_t replays = 0;
  bool is_complete = true;  // else the search stopped after kMaxReplays
  // The recording began with memory in use; the replays begin with what was live then, allocated
  // again, since what was cached is not what the changed script would have cached.
  bool is_fresh = false;
  bool is_cut = false;  // the recording ran out of memory: what would have come after is missing
};

// Bounds the time: a search takes no longer than so many replays of the recording.
inline constexpr size_t kMaxReplays = 20;

// Each remedy alone; then, until the goal holds, two and three together, the cheapest first; where
// there is no goal, the best of each kind together. A combination that fits has no part that it
// could do without. The goal is the capacity of `settings`, else that of the recorded GPU if memory
// ran out on it. Absent: the schedule is expanded again and cannot be edited. Error:
// ReplayWhatIf()'s.
absl::StatusOr<std::optional<RemedySearch>> SearchRemedies(const Study& study,
                                                           const ReplaySettings& settings,
                                                           ProgressSink* progress = nullptr);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_REMEDY_SEARCH_H_
