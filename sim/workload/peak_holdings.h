// What was live at the peak of requested memory, by the stack that requested it; and where in a
// schedule its recorded reserved memory peaks.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// What one stack held at the peak.
struct PeakHolding {
  uint32_t stack = 0;
  Bytes requested;
  uint64_t allocations = 0;
  AllocationId largest = kNoAllocation;  // the first of the largest
};

// The holdings at the peak.
struct PeakHoldings {
  Bytes requested;                  // at the peak, from alloc to free, without refused requests
  size_t request = 0;               // the one that reaches it; also 0 if nothing is requested
  std::vector<PeakHolding> stacks;  // most bytes first
};

// Returns the holdings at the peak without a simulation. O(requests).
PeakHoldings HoldingsAtPeak(const Schedule& schedule);

// Returns how many of the schedule's allocs and ooms come before those near the peak, which is the
// recorded one or, in a schedule that was written, where most is requested. This is a guess for
// FragmentationOptions. O(events).
uint64_t AllocationsBeforePeak(const Schedule& schedule);

}  // namespace memreplay
