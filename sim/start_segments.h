// Which segments were there when a recording began. Used by start_state.cc.
#ifndef MEMREPLAY_SIM_START_SEGMENTS_H_
#define MEMREPLAY_SIM_START_SEGMENTS_H_

#include "trace/memory_state.h"
#include "trace/schedule.h"

namespace memreplay {

// The final state's segments, undone event by event back to the start; without
// blocks, ascending by address. Where a released segment's kind is in no event,
// it is told from sizes: cudaMalloc segments of small pools have 2 MiB; a mapped
// range is large if an allocation in it exceeded 1 MiB. Ranges of an expandable
// segment that touch are one. O(events * log segments).
MemoryState StartSegments(const Schedule& schedule);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_START_SEGMENTS_H_
