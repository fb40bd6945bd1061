#include "sim/observe/moments.h"

#include <algorithm>

namespace memreplay {

void MomentsObserver::OnStart(const MemoryState& /*state*/, const Allocator& /*allocator*/) {
  peak_ = usage_.peak();
  rises_ = usage_.rises();
  moments_.at_peak = {.usage = usage_.current()};
  moments_.peak_request.fill(kBeforeFirstRequest);
}

void MomentsObserver::Look(bool is_fullest) {
  const Usage& now = usage_.current();
  if (is_fullest) {
    moments_.at_peak = {.request = request_, .event = usage_.events() - 1, .usage = now};
  }
  const Usage& peak = usage_.peak();
  if (usage_.rises() == rises_) return;
  rises_ = usage_.rises();
  if (peak.reserved() > peak_.reserved()) {
    const Bytes avoidable = std::min(peak.reserved() - peak_.reserved(), unused_before_);
    if (avoidable >= most_avoidable_) {
      most_avoidable_ = avoidable;
      moments_.cause_event = usage_.events() - 1;
    }
  }
  for (size_t kind = 0; kind < kUsageKinds; ++kind) {
    if (peak.bytes[kind] > peak_.bytes[kind]) moments_.peak_request[kind] = request_;
  }
  peak_ = peak;
}

}  // namespace memreplay
