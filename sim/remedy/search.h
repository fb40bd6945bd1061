// Finds which remedies, alone or together, lower the peak of a recording or make it fit.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/passes.h"
#include "sim/remedy/remedies.h"
#include "sim/remedy/scaling.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "sim/whatif/smallest_capacity.h"
#include "trace/value/units.h"

namespace memreplay {

// The result of a replay with some remedies: on a device of the goal's size if memory runs out
// without them and not with them, else on an unlimited one.
struct RemedyRun {
  std::vector<size_t> remedies;  // in RemedySearch::remedies, ascending; empty for no change
  Bytes peak_reserved;           // a device with this much suffices; a smaller one may
  Bytes peak_allocated;
  bool survives = false;  // with a goal: memory does not run out there
  double cost = 0;        // lower is cheaper
};

// The changes that were tried, and their results.
struct RemedySearch {
  PassFacts facts;
  std::vector<Remedy> remedies;  // those tried, the cheapest first
  std::optional<Bytes> goal;     // what PyTorch may reserve
  RemedyRun as_is;
  std::vector<RemedyRun> runs;  // alone, in the order of `remedies`; then together
  size_t replays = 0;
  bool is_complete = true;  // else the search stopped after kMaxReplays
  // Whether the recording began with memory in use. The replays then begin with what was live,
  // allocated again, since the changed script would not have cached what was cached.
  bool is_fresh = false;
  bool is_cut = false;  // the recording ran out of memory, so what would have come after is missing
};

// Bounds the time of a search to this many replays of the recording.
inline constexpr size_t kMaxReplays = 20;

// Tries each remedy alone; then, until the goal is reached, two and three together, the cheapest
// first, or without a goal the best of each kind together. A combination that fits has no
// unnecessary part. The goal is the capacity of `settings`, else that of the recorded GPU if memory
// ran out on it. `schedule` is that of the study, or the same with other sizes (Scaling::At()); it
// must outlive the result. Returns nullopt if it is expanded again and cannot be edited. Error:
// ReplayWhatIf()'s.
absl::StatusOr<std::optional<RemedySearch>> SearchRemedies(const Study& study,
                                                           const Schedule& schedule,
                                                           const ReplaySettings& settings,
                                                           ProgressSink* progress = nullptr);

// Replays a run of the search once more, on a device of the goal's size, for the observer that
// `watch` makes for the edited schedule; the schedule is gone afterwards. Error: ReplayWhatIf()'s.
absl::Status WatchRun(const Study& study, const ReplaySettings& settings,
                      const RemedySearch& search, const RemedyRun& run,
                      absl::FunctionRef<Observer*(const Schedule& edited)> watch);

// Finds the largest value with which the remedies of a run make the script fit the goal of the
// search, in at most 16 replays. `study` is that of the scaling's base, `settings` those of the
// search. Error: ReplayWhatIf()'s.
absl::StatusOr<LargestFit> FindLargestValue(const Study& study, const ReplaySettings& settings,
                                            const RemedySearch& search, const RemedyRun& run,
                                            const Scaling& scaling);

}  // namespace memreplay
