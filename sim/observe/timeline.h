// The four figures of usage.h, and the inactive split memory, over a whole run, in bounded space,
// such that no peak and no valley is lost; and the moments of a run to mark in their picture.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "trace/schedule/schedule.h"
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

// An event that a timeline shows by itself.
struct HistoryMark {
  uint64_t position = 0;
  EventKind kind = EventKind::kMark;
  Bytes size;         // of segments and of requests that ran out of memory
  uint32_t text = 0;  // name of the phase of kMark, a StringTable index
};

// An observer that keeps the data of a picture of a run: its timeline, and the moments to mark.
// Positions are those of the file's events (EventOfRequest()), so that runs of one schedule under
// different settings share an axis.
class HistoryObserver final : public Observer {
 public:
  enum class Clock : uint8_t {
    kEvents,    // for an exact replay: its n-th traced event is the recording's n-th
    kRequests,  // OnRequest() counts; effects have the position of their request
  };
  // The timeline has at most `buckets` buckets.
  HistoryObserver(const Schedule& schedule, Clock clock, size_t buckets)
      : schedule_(schedule), clock_(clock), timeline_(usage_, buckets, &position_) {}
  HistoryObserver(const HistoryObserver&) = delete;
  HistoryObserver& operator=(const HistoryObserver&) = delete;

  Needs needs() const override { return {.requests = clock_ == Clock::kRequests}; }
  void OnStartEvent(const Event& event) override { usage_.OnStartEvent(event); }
  void OnStart(const MemoryState& state, const Allocator& allocator) override {
    usage_.OnStart(state, allocator);
  }
  void OnRequest(size_t request) override;
  void OnEvent(const Event& event) override;

  uint64_t events() const { return usage_.events(); }
  bool complete() const { return timeline_.events_per_bucket() == 1; }  // a point per event
  std::vector<TimelinePoint> points() const { return PointsOf(timeline_.buckets()); }
  const std::vector<HistoryMark>& segments() const { return segments_; }
  const std::vector<HistoryMark>& ooms() const { return ooms_; }
  const std::vector<HistoryMark>& phases() const { return phases_; }

 private:
  const Schedule& schedule_;
  const Clock clock_;
  UsageObserver usage_;
  uint64_t position_ = 0;
  uint64_t traced_ = 0;
  TimelineObserver timeline_;
  std::vector<HistoryMark> segments_;
  std::vector<HistoryMark> ooms_;
  std::vector<HistoryMark> phases_;
};

}  // namespace memreplay
