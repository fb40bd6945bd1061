// Describes a run as a whole: memory over time, what held it, and what is unknown because the
// recording began late.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/observe/holders.h"
#include "sim/observe/timeline.h"
#include "sim/observe/usage.h"
#include "sim/study/study.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// How memory developed in the replay of a recording or in a schedule's run, and what held it.
struct LookBack {
  std::vector<TimelineBucket> timeline;
  std::vector<Holder> holders;
  Usage peak;
  // The number of events up to which a recording is exact (all of them: to the end), and why no
  // further.
  uint64_t exact_until = 0;
  std::string exactness_reason;
  bool diverged = false;  // from there on this is the simulation's history, not the recording's
  // Blocks handed out before the recording whose extent it leaves open, and by how much allocated
  // and active memory may be less, or more, than reported.
  uint64_t open_extents = 0;
  Bytes less, more;
};

inline constexpr size_t kTimelineBuckets = 64;

// Looks back on a recording as it happened, or on a written schedule under its settings. Error:
// ReplayWhatIf()'s.
absl::StatusOr<LookBack> LookBackOn(const Study& study);

// Requested bytes that are live when a recording has most of them live, and how many of those it
// saw being allocated. Needs no simulation. O(requests).
struct SeenAtPeak {
  Bytes live, seen;
};
SeenAtPeak SeenWhereMostIsLive(const Schedule& schedule);

}  // namespace memreplay
