// The four figures of usage.h, and the inactive split memory, over a whole run, in
// bounded space, such that no peak and no valley is lost.
#ifndef MEMREPLAY_SIM_TIMELINE_H_
#define MEMREPLAY_SIM_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "sim/allocator.h"
#include "sim/observer.h"
#include "sim/usage.h"
#include "trace/event.h"

namespace memreplay {

// Consecutive events taken together: the lowest and the highest value that
// each figure had after one of them, and the values after the last.
struct TimelineBucket {
  uint64_t first_event = 0;
  uint64_t last_event = 0;  // inclusive
  Usage lowest;
  Usage highest;
  Usage last;
  Bytes highest_inactive_split;
  Bytes last_inactive_split;
};

// Keeps at most `capacity` buckets (rounded down to an even number, at least
// 2), all but the last of the same number of events, a power of two; while
// everything fits that number is one and the timeline is exact. O(1) per event
// amortised.
class TimelineObserver final : public Observer {
 public:
  // Reads `usage`, which must see each event before this observer does (put it
  // first in the ObserverList) and must outlive it. `allocator`: whose statistics
  // tell of inactive split memory as they stand when the event is emitted (the
  // block of a free counts from the next event on); null: it stays 0.
  TimelineObserver(const UsageObserver& usage, size_t capacity,
                   const Allocator* allocator = nullptr);

  void OnEvent(const Event& event) override;

  const std::vector<TimelineBucket>& buckets() const { return buckets_; }
  uint64_t events_per_bucket() const { return stride_; }

 private:
  void HalveResolution();  // of an even number of full buckets

  const UsageObserver& usage_;
  const Allocator* allocator_;
  const size_t capacity_;
  uint64_t stride_ = 1;
  uint64_t next_event_ = 0;
  std::vector<TimelineBucket> buckets_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_TIMELINE_H_
