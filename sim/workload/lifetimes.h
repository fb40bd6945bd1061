// When each allocation of a schedule is in use: what any allocator, however
// clever, has to find room for.
#ifndef MEMREPLAY_SIM_WORKLOAD_LIFETIMES_H_
#define MEMREPLAY_SIM_WORKLOAD_LIFETIMES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// In use from just before moment `begin` until just before moment `end`.
struct Lifetime {
  uint32_t begin = 0;
  uint32_t end = 0;  // above begin
  Bytes requested;
  Bytes rounded;  // to 512 bytes, at least as many: what PyTorch's blocks are made of
};

// Of every allocation, in order of `begin`. Moments are indexes of requests plus
// one; 0 is the start. An allocation ends with its free, or, where the schedule
// says when other streams are done with it, with the last of these. A request that
// ran out of memory in the recording never lives, nor does one with which more than
// kMaxDeviceMemory would be in use. Memory taken past the allocator is no part of it.
// O(requests).
std::vector<Lifetime> LifetimesOf(const Schedule& schedule);

// Of `items`, positions in `lifetimes`: by the end of these, those of one end in the order given.
// O(items + moments).
std::vector<uint32_t> ByEnd(absl::Span<const Lifetime> lifetimes, absl::Span<const uint32_t> items);

// Whether the recording found no memory for this request. False of programs.
bool RanOutWhenRecorded(const Schedule& schedule, size_t request);

// The most that is live at once.
struct PeakLive {
  Bytes requested;
  Bytes rounded;        // the peak of the rounded sizes, perhaps at another moment
  uint32_t moment = 0;  // when `requested` is reached first
};

// The most that is in use at once: no allocator can do with less. O(n + moments).
PeakLive PeakLiveOf(absl::Span<const Lifetime> lifetimes);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_LIFETIMES_H_
