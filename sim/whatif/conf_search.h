// Finds settings that are worth trying on a schedule: a bounded search of what its release allows.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/whatif/sweep.h"

namespace memreplay {

// Maximum number of settings that a search replays on any schedule.
inline constexpr size_t kMaxSearch = 120;

// Returns how many settings a search replays at most: fewer on a schedule of more than a million
// requests.
size_t MaxSearch(const Schedule& schedule);

// Returns the rows of every setting tried, best first (RanksBefore()). The current settings
// (context.settings) are one of them, and no other means the same. Tries single keys first:
// expandable_segments; max_split_size_mb at sizes that the schedule requests;
// roundup_power2_divisions as a number and as lists; large_segment_size_mb;
// garbage_collection_threshold with a memory fraction if the device has a capacity. Then tries
// pairs of the best of each, and max_split_size_mb near its best. Uses only keys that the release
// knows, and never max_split_size_mb with expandable_segments, which together may grow without
// bound.
std::vector<SweepRow> SearchConf(const SweepContext& context);

}  // namespace memreplay
