// Which pool an event of a recording concerns, where its format does not say.
#ifndef MEMREPLAY_TRACE_SCHEDULE_RECORDED_POOLS_H_
#define MEMREPLAY_TRACE_SCHEDULE_RECORDED_POOLS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/event_view.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The pool of each event (an index into `pools`). Before PyTorch 2.13 only the
// segments of the final state name their pools; going back from there, what lies
// in one of them is its pool's, up to the event that brought it. A segment
// released before the end is of the pool that its release names: the default pool, unless
// pages next to it show another.
// O(events * log segments).
std::vector<uint16_t> PoolsBySegments(const MemoryState& final_state,
                                      absl::Span<const PoolId> pools, EventView events);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_SCHEDULE_RECORDED_POOLS_H_
