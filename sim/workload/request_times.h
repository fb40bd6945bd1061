// When each request of a recording was made.
#ifndef MEMREPLAY_SIM_WORKLOAD_REQUEST_TIMES_H_
#define MEMREPLAY_SIM_WORKLOAD_REQUEST_TIMES_H_

#include <cstdint>
#include <vector>

#include "trace/schedule/schedule.h"

namespace memreplay {

// By request, microseconds since the first: the recorded time of its first event;
// of a request without events of its own that of the one before. Never decreasing,
// whatever the file says. Empty if the file has no times. O(requests).
std::vector<int64_t> RequestTimes(const Schedule& schedule);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_REQUEST_TIMES_H_
