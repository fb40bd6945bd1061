// Where in a schedule its recorded reserved memory peaks.
#pragma once

#include <cstdint>

#include "trace/schedule/schedule.h"

namespace memreplay {

// Returns how many of the schedule's allocs and ooms come before those near the peak, which is the
// recorded one or, in a schedule that was written, where most is requested. This is a guess for
// FragmentationOptions. O(events).
uint64_t AllocationsBeforePeak(const Schedule& schedule);

}  // namespace memreplay
