// When each allocation of a schedule is in use: what any allocator, however clever, has to find
// room for.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// When an allocation is in use: from just before moment `begin` until just before moment `end`.
struct Lifetime {
  uint32_t begin = 0;
  uint32_t end = 0;  // above begin
  Bytes requested;
  Bytes rounded;  // up to a multiple of 512 bytes, of which PyTorch's blocks are made
};

// Returns the lifetime of every allocation, in order of `begin`. Moments are indexes of requests
// plus one; 0 is the start. An allocation ends with its free, or, if the schedule says when other
// streams are done with it, with the last of these. A request that ran out of memory in the
// recording has no lifetime, nor does one with which more than kMaxDeviceMemory would be in use.
// Memory outside the allocator is not included. O(requests).
std::vector<Lifetime> LifetimesOf(const Schedule& schedule);

// Returns `items`, which are positions in `lifetimes`, sorted by end; those with the same end keep
// their order. O(items + moments).
std::vector<uint32_t> ByEnd(absl::Span<const Lifetime> lifetimes, absl::Span<const uint32_t> items);

// Returns whether this request ran out of memory in the recording; false for a schedule that was
// written.
bool RanOutWhenRecorded(const Schedule& schedule, size_t request);

// The maximum that is live at once.
struct PeakLive {
  Bytes requested;
  uint32_t moment = 0;          // when that is first reached
  Bytes rounded;                // the peak of the rounded sizes, perhaps at another moment
  uint32_t rounded_moment = 0;  // when that is first reached
};

// Returns the maximum that is in use at once, which any allocator needs at least. O(n + moments).
PeakLive PeakLiveOf(absl::Span<const Lifetime> lifetimes);

}  // namespace memreplay
