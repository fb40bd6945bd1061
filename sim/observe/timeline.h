// The four figures of usage.h, and the inactive split memory, over a whole run, in bounded space,
// such that no peak and no valley is lost.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "trace/value/event.h"

namespace memreplay {

// The figures after one event.
struct TimelinePoint {
  uint64_t event = 0;     // as counted by the observer
  uint64_t position = 0;  // of the clock; equals `event` without one
  Usage usage;
};

// Consecutive events: for each figure (by UsageKind) the first event after which it was lowest, and
// highest; and the last event.
struct TimelineBucket {
  uint64_t first_event = 0;
  std::array<TimelinePoint, kUsageKinds> lowest;
  std::array<TimelinePoint, kUsageKinds> highest;
  TimelinePoint last;
  Bytes highest_inactive_split;
  Bytes last_inactive_split;

  uint64_t last_event() const { return last.event; }  // inclusive
  Usage Lowest() const;                               // each figure at its own moment
  Usage Highest() const;
};

// Returns the points that the buckets keep, each event once, ascending. A bucket has at most nine.
std::vector<TimelinePoint> PointsOf(const std::vector<TimelineBucket>& buckets);

// An observer that keeps at most `capacity` buckets (rounded down to an even number, at least 2).
// All but the last have the same number of events, a power of two. The timeline is exact as long as
// that number is one. O(1) per event amortised.
class TimelineObserver final : public Observer {
 public:
  // Reads `usage`, which must see each event before this observer does (put it first in the
  // ObserverList) and must outlive it. Inactive split memory is that of the allocator's statistics
  // when the event is emitted (the block of a free counts from the next event on); without
  // OnStart() it stays 0. `clock` is the position of the run in something else, such as a file; it
  // may be null.
  TimelineObserver(const UsageObserver& usage, size_t capacity, const uint64_t* clock = nullptr);

  void OnStart(const MemoryState& /*state*/, const Allocator& allocator) override {
    allocator_ = &allocator;
  }
  void OnEvent(const Event& event) override;

  const std::vector<TimelineBucket>& buckets() const { return buckets_; }
  uint64_t events_per_bucket() const { return stride_; }

 private:
  void HalveResolution();  // needs an even number of full buckets

  const UsageObserver& usage_;
  const Allocator* allocator_ = nullptr;
  const uint64_t* clock_;
  const size_t capacity_;
  uint64_t stride_ = 1;  // a power of two
  uint64_t next_event_ = 0;
  std::vector<TimelineBucket> buckets_;
};

}  // namespace memreplay
