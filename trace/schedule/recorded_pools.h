// Infers the pool of each event of a recording whose format does not contain it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/event_view.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// Returns the pool of each event, as an index into `pools`. Before PyTorch 2.13 only the segments
// of the final state name their pools. Going back from there, events inside a segment belong to its
// pool, up to the event that created the segment. A segment released before the end belongs to the
// pool that its release names: the default pool, unless adjacent pages show another. O(events * log
// segments).
std::vector<uint16_t> PoolsBySegments(const MemoryState& final_state,
                                      absl::Span<const PoolId> pools, EventView events);

}  // namespace memreplay
