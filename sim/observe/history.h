// The data of a picture of a run: its timeline, and the moments to mark.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/observer.h"
#include "sim/observe/timeline.h"
#include "sim/observe/usage.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"

namespace memreplay {

// An event that a timeline shows by itself.
struct HistoryMark {
  uint64_t position = 0;
  EventKind kind = EventKind::kMark;
  Bytes size;         // of segments and of requests that ran out of memory
  uint32_t text = 0;  // name of the phase of kMark, a StringTable index
};

// An observer that keeps the timeline and marks of a run. Positions are those of the file's events
// (EventOfRequest()), so that runs of one schedule under different settings share an axis.
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
