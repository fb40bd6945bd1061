// Finds the segments that existed when a recording began. Used by start_state.cc.
#pragma once

#include <string>

#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// The segments of the final state after every event is undone back to the start, without blocks,
// ascending by address. If no event contains a released segment's kind, it is inferred from sizes:
// cudaMalloc segments of small pools have 2 MiB; a mapped range has the kind of the blocks seen in
// it, else of the nearest range. Ranges of an expandable segment that touch are one. If its
// reservation is seen to begin below its first range, an empty range (total_size 0) marks its
// begin. `large_page` is the page size of expandable segments in large pools.
// Segments that the file makes up are left out: those that no driver returns (IsPossible()), that
// are on streams or in pools that the file does not list, or that have no bytes. O(events * log
// segments).
struct StartSegmentList {
  MemoryState segments;
  std::string left_out;  // describes the first one; "" if there is none
};
StartSegmentList StartSegments(const Schedule& schedule, Bytes large_page);

}  // namespace memreplay
