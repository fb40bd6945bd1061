// When each request of a recording was made.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/schedule/schedule.h"

namespace memreplay {

// Returns microseconds since the first request, by request: the recorded time of a request's first
// event, or that of the request before if it has no events of its own. They never decrease,
// whatever the file says. Empty if the file has no times. O(requests).
std::vector<int64_t> RequestTimes(const Schedule& schedule);

}  // namespace memreplay
