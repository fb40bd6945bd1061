#include "sim/observe/timeline.h"

#include <algorithm>

namespace memreplay {
namespace {

// Extends the bucket by what came after it.
void Widen(const std::array<TimelinePoint, kUsageKinds>& lowest,
           const std::array<TimelinePoint, kUsageKinds>& highest, TimelineBucket* bucket) {
  for (size_t i = 0; i < kUsageKinds; ++i) {
    if (lowest[i].usage.bytes[i] < bucket->lowest[i].usage.bytes[i]) bucket->lowest[i] = lowest[i];
    if (highest[i].usage.bytes[i] > bucket->highest[i].usage.bytes[i]) {
      bucket->highest[i] = highest[i];
    }
  }
}

// Returns each figure at the moment that is its own.
Usage EachAtItsOwn(const std::array<TimelinePoint, kUsageKinds>& points) {
  Usage usage;
  for (size_t i = 0; i < kUsageKinds; ++i) usage.bytes[i] = points[i].usage.bytes[i];
  return usage;
}

}  // namespace

Usage TimelineBucket::Lowest() const { return EachAtItsOwn(lowest); }
Usage TimelineBucket::Highest() const { return EachAtItsOwn(highest); }

std::vector<TimelinePoint> PointsOf(const std::vector<TimelineBucket>& buckets) {
  std::vector<TimelinePoint> points;
  for (const TimelineBucket& bucket : buckets) {
    const auto first = static_cast<std::ptrdiff_t>(points.size());
    points.insert(points.end(), bucket.lowest.begin(), bucket.lowest.end());
    points.insert(points.end(), bucket.highest.begin(), bucket.highest.end());
    points.push_back(bucket.last);
    std::sort(points.begin() + first, points.end(),
              [](const TimelinePoint& a, const TimelinePoint& b) { return a.event < b.event; });
    points.erase(std::unique(points.begin() + first, points.end(),
                             [](const TimelinePoint& a, const TimelinePoint& b) {
                               return a.event == b.event;
                             }),
                 points.end());
  }
  return points;
}

TimelineObserver::TimelineObserver(const UsageObserver& usage, size_t capacity,
                                   const uint64_t* clock)
    : usage_(usage), clock_(clock), capacity_(std::max<size_t>(capacity / 2 * 2, 2)) {}

void TimelineObserver::OnEvent(const Event&) {
  const Usage& now = usage_.current();
  const uint64_t event = next_event_++;
  const int64_t split = allocator_ == nullptr ? 0 : allocator_->inactive_split_bytes();
  const Bytes inactive(static_cast<uint64_t>(std::max<int64_t>(split, 0)));
  const TimelinePoint point = {event, clock_ == nullptr ? event : *clock_, now};
  if ((event & (stride_ - 1)) != 0) {
    TimelineBucket& bucket = buckets_.back();
    for (size_t i = 0; i < kUsageKinds; ++i) {
      if (now.bytes[i] < bucket.lowest[i].usage.bytes[i]) bucket.lowest[i] = point;
      if (now.bytes[i] > bucket.highest[i].usage.bytes[i]) bucket.highest[i] = point;
    }
    bucket.last = point;
    bucket.last_inactive_split = inactive;
    bucket.highest_inactive_split = std::max(bucket.highest_inactive_split, inactive);
    return;
  }
  if (buckets_.size() == capacity_) HalveResolution();
  TimelineBucket& bucket = buckets_.emplace_back();
  bucket.first_event = event;
  bucket.lowest.fill(point);
  bucket.highest.fill(point);
  bucket.last = point;
  bucket.highest_inactive_split = inactive;
  bucket.last_inactive_split = inactive;
}

void TimelineObserver::HalveResolution() {
  const size_t pairs = buckets_.size() / 2;
  for (size_t i = 0; i < pairs; ++i) {
    TimelineBucket merged = buckets_[2 * i];
    const TimelineBucket& second = buckets_[2 * i + 1];
    Widen(second.lowest, second.highest, &merged);
    merged.last = second.last;
    merged.last_inactive_split = second.last_inactive_split;
    merged.highest_inactive_split =
        std::max(merged.highest_inactive_split, second.highest_inactive_split);
    buckets_[i] = merged;
  }
  buckets_.resize(pairs);
  stride_ *= 2;
}

void HistoryObserver::OnRequest(size_t request) {
  if (clock_ == Clock::kRequests) position_ = EventOfRequest(schedule_, request);
}

void HistoryObserver::OnEvent(const Event& event) {
  if (clock_ == Clock::kEvents) position_ = traced_;
  traced_ += IsTraced(event.kind);
  usage_.OnEvent(event);
  timeline_.OnEvent(event);
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      segments_.push_back({position_, event.kind, event.size, kNoText});
      break;
    case EventKind::kOom: ooms_.push_back({position_, event.kind, event.size, kNoText}); break;
    case EventKind::kMark:
      if (event.is_mark(MarkKind::kPhase)) {
        phases_.push_back({position_, event.kind, Bytes(), event.text_or_stack});
      }
      break;
    default: break;
  }
}

}  // namespace memreplay
