#include "cuda/driver_call_log.h"

#include <algorithm>

#include "trace/value/median.h"

namespace memreplay {

std::string_view DriverCallName(DriverCall call) {
  static constexpr std::string_view kNames[] = {
#define MEMREPLAY_NAME(kind, name) #name,
      MEMREPLAY_DRIVER_CALLS(MEMREPLAY_NAME)
#undef MEMREPLAY_NAME
  };
  return kNames[static_cast<size_t>(call)];
}

int64_t DriverCallTimes::median_ns() const { return Median(sample); }

void DriverCallLog::Add(DriverCall call, Bytes bytes, int64_t nanoseconds, bool succeeded) {
  DriverCallTimes& times = rows_[{call, bytes}];
  times.min_ns = times.calls == 0 ? nanoseconds : std::min(times.min_ns, nanoseconds);
  times.max_ns = std::max(times.max_ns, nanoseconds);
  ++times.calls;
  if (!succeeded) ++times.refused;
  times.total_ns += nanoseconds;
  if (times.sample.size() < DriverCallTimes::kSample) times.sample.push_back(nanoseconds);
}

DriverCallTimes DriverCallLog::Total(DriverCall call) const {
  DriverCallTimes total;
  for (auto row = rows_.lower_bound({call, Bytes(0)}); row != rows_.end(); ++row) {
    if (row->first.first != call) break;
    const DriverCallTimes& times = row->second;
    total.min_ns = total.calls == 0 ? times.min_ns : std::min(total.min_ns, times.min_ns);
    total.max_ns = std::max(total.max_ns, times.max_ns);
    total.calls += times.calls;
    total.refused += times.refused;
    total.total_ns += times.total_ns;
  }
  return total;
}

}  // namespace memreplay
