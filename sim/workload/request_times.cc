#include "sim/workload/request_times.h"

#include <algorithm>

#include "trace/value/trace.h"

namespace memreplay {

std::vector<int64_t> RequestTimes(const Schedule& schedule) {
  const auto& devices = schedule.trace().devices;
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const DeviceTrace& d) {
    return d.device == schedule.device();
  });
  if (schedule.is_program() || device == devices.end() ||
      device->time_us.size() < schedule.recorded().size() || schedule.requests().empty()) {
    return {};
  }
  const absl::Span<const uint32_t> begins = schedule.recorded_begin();
  const std::vector<int64_t>& recorded = device->time_us;
  std::vector<int64_t> times;
  times.reserve(begins.size());
  int64_t now = begins[0] < recorded.size() ? recorded[begins[0]] : 0;
  const int64_t first = now;
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : recorded.size();
    if (begins[i] < end && begins[i] < recorded.size()) now = std::max(now, recorded[begins[i]]);
    times.push_back(now - first);
  }
  return times;
}

}  // namespace memreplay
