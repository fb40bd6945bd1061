// What PyTorch promises about a snapshot and the statistics taken at the same moment: sums over the
// listed segments and blocks equal the current values.
#pragma once

#include <string>

#include "sim/model/memory_stats.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// Returns "" if all identities hold, else the first that does not, with both values.
std::string BrokenStatisticsIdentity(const MemoryState& segments, const MemoryStats& stats);

}  // namespace memreplay
