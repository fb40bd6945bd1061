// Where in a schedule its recorded reserved memory peaks.
#ifndef MEMREPLAY_SIM_WORKLOAD_RESERVED_PEAK_H_
#define MEMREPLAY_SIM_WORKLOAD_RESERVED_PEAK_H_

#include <cstdint>

#include "trace/schedule/schedule.h"

namespace memreplay {

// How many of the schedule's allocs and ooms come before those near the peak: as recorded,
// or, in a program, where most is requested. A guess, for FragmentationOptions. O(events).
uint64_t AllocationsBeforePeak(const Schedule& schedule);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_RESERVED_PEAK_H_
