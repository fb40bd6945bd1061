// What start_state.cc puts together: the segments that existed when a recording began, and how long
// the blocks were that lived then and are gone at its end, as recorded addresses show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// A block of a large pool's cudaMalloc segment with a free block behind it. Its extent is `rounded`
// plus a slack: a multiple of 512 up to `max_slack`.
struct OpenExtent {
  Address address;
  AllocationId id = kNoAllocation;
  Bytes requested;
  Bytes rounded;
  Bytes max_slack;
  // The following are found by FollowAddresses().
  std::optional<Bytes> revealed;                       // the slack
  std::optional<Bytes> assumed;                        // one that fits recorded snapshots
  std::vector<std::pair<int64_t, int64_t>> ruled_out;  // closed intervals of slack
  size_t merge_at = 64;                                // when to join overlapping ones
  uint64_t ruled_out_by = 0;                           // the last event that ruled any out
  uint64_t freed_by = ~uint64_t{0};                    // an event; none if live to the end
};

// What a recording says about where hidden blocks end.
struct ExtentEvidence {
  // The first event that is no best fit, or starts at no free block, under any extents.
  std::optional<uint64_t> contradicted_at;
  std::string contradiction;
};

// Follows the recorded events with their addresses. `segments` are those of the start with their
// active blocks; `open` is ascending by address. A recorded snapshot (active bytes of the device)
// fixes the sum of the slacks that are open then.
ExtentEvidence FollowAddresses(const Schedule& schedule, const AllocatorConfig& config,
                               const TorchProfile& profile, const MemoryState& segments,
                               std::vector<OpenExtent>& open);

// Returns the values in 0, 512 ... max_slack that are not ruled out, ascending.
std::vector<Bytes> FeasibleSlacks(const OpenExtent& open);

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
