// Which settings are worth trying on a program: a bounded search of what its
// release allows.
#ifndef MEMREPLAY_SIM_WHATIF_CONF_SEARCH_H_
#define MEMREPLAY_SIM_WHATIF_CONF_SEARCH_H_

#include <cstddef>
#include <vector>

#include "sim/whatif/sweep.h"

namespace memreplay {

// Replays at most this many settings.
inline constexpr size_t kMaxSearch = 120;

// The rows of every setting tried, best first (RanksBefore()); the current ones
// (context.settings) are one of them, and no other means the same. First single
// keys: expandable_segments, max_split_size_mb at sizes that the program asks
// for, roundup_power2_divisions as a number and as lists, large_segment_size_mb;
// garbage_collection_threshold with a memory fraction where the device has a
// capacity. Then pairs of the best of each, and max_split_size_mb near its best.
// Only keys that the release knows; never max_split_size_mb with
// expandable_segments, which together may grow without bound.
std::vector<SweepRow> SearchConf(const SweepContext& context);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_CONF_SEARCH_H_
