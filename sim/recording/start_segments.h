// Which segments were there when a recording began. Used by start_state.cc.
#ifndef MEMREPLAY_SIM_RECORDING_START_SEGMENTS_H_
#define MEMREPLAY_SIM_RECORDING_START_SEGMENTS_H_

#include <string>

#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// The final state's segments, undone event by event back to the start; without
// blocks, ascending by address. Where a released segment's kind is in no event,
// it is told from sizes: cudaMalloc segments of small pools have 2 MiB; a mapped
// range is what the blocks seen in it are, else what the nearest range is.
// Ranges of an expandable segment that touch are one. Where its reservation is
// seen to begin below its first range, an empty range (total_size 0) says where.
// `large_page`: of expandable segments in large pools.
// What the file makes up is left out: segments that no driver hands out (IsPossible()), on
// streams or in pools that the file does not list, without bytes.
// O(events * log segments).
struct StartSegmentList {
  MemoryState segments;
  std::string left_out;  // the first one, in words; empty: none
};
StartSegmentList StartSegments(const Schedule& schedule, Bytes large_page);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_START_SEGMENTS_H_
