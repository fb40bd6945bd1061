#include "sim/timeline.h"

#include <algorithm>

namespace memreplay {
namespace {

void Widen(const Usage& lowest, const Usage& highest, TimelineBucket* bucket) {
  for (size_t i = 0; i < kUsageKinds; ++i) {
    bucket->lowest.bytes[i] = std::min(bucket->lowest.bytes[i], lowest.bytes[i]);
    bucket->highest.bytes[i] = std::max(bucket->highest.bytes[i], highest.bytes[i]);
  }
}

}  // namespace

TimelineObserver::TimelineObserver(const UsageObserver& usage, size_t capacity,
                                   const Allocator* allocator)
    : usage_(usage), allocator_(allocator), capacity_(std::max<size_t>(capacity / 2 * 2, 2)) {}

void TimelineObserver::OnEvent(const Event&) {
  const Usage& now = usage_.current();
  const uint64_t event = next_event_++;
  const int64_t split =
      allocator_ == nullptr ? 0 : allocator_->statistics().inactive_split_bytes.all.current;
  const Bytes inactive(static_cast<uint64_t>(std::max<int64_t>(split, 0)));
  if (event % stride_ != 0) {
    TimelineBucket& bucket = buckets_.back();
    Widen(now, now, &bucket);
    bucket.last_event = event;
    bucket.last = now;
    bucket.last_inactive_split = inactive;
    bucket.highest_inactive_split = std::max(bucket.highest_inactive_split, inactive);
    return;
  }
  if (buckets_.size() == capacity_) HalveResolution();
  buckets_.push_back({event, event, now, now, now, inactive, inactive});
}

void TimelineObserver::HalveResolution() {
  const size_t pairs = buckets_.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    TimelineBucket merged = buckets_[2 * i];
    const TimelineBucket& second = buckets_[2 * i + 1];
    Widen(second.lowest, second.highest, &merged);
    merged.last_event = second.last_event;
    merged.last = second.last;
    merged.last_inactive_split = second.last_inactive_split;
    merged.highest_inactive_split =
        std::max(merged.highest_inactive_split, second.highest_inactive_split);
    buckets_[i] = merged;
  }
  buckets_.resize(pairs);
  stride_ *= 2;
}

}  // namespace memreplay
