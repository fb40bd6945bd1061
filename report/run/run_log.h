// Records every allocation, every range of reserved memory and every event of a run, so that the
// state after any event can be looked up without running it again.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The history of a run. A moment is the number of preceding events: 0 is before the first event, n
// after the n-th.
struct RunLog {
  static constexpr uint32_t kNever = 0xffffffff;

  // In the order of their kAlloc events. The first `start_allocations` existed before the first
  // event and ascend by address.
  struct Allocation {
    AllocationId id = 0;  // of the schedule, or beyond its count if the schedule lacks it
    Address address;
    Bytes block_size;
    Bytes requested_size;
    uint32_t stack = kNoStack;
    uint32_t stream = 0;          // Schedule::stream_handle()
    uint16_t pool = 0;            // Trace::pools
    bool starts_pending = false;  // freed before the first event
  };
  // A segment, or the part of an expandable one that one event mapped, without what was unmapped
  // since. What remains of a range after part of it is unmapped is a new range.
  struct Range {
    Address address;
    Bytes size;
    uint32_t begin = 0;  // moments: exists from `begin` until before `end`
    uint32_t end = kNever;
    uint32_t stream = 0;
    uint16_t pool = 0;
    bool is_large = false;
    bool is_expandable = false;
  };
  // An event that is neither an allocation nor its free.
  struct Other {
    uint32_t event = 0;
    Event what;
  };

  std::vector<Allocation> allocations;
  size_t start_allocations = 0;
  std::vector<Range> ranges;  // ascending by `begin`
  size_t start_ranges = 0;
  std::vector<EventKind> kinds;       // of each event
  std::vector<uint32_t> positions;    // of each event, in the file; never descending
  std::vector<uint32_t> freed;        // for each kFree and kFreeCompleted: the allocation
  std::vector<uint32_t> free_stacks;  // for each kFree
  std::vector<Other> others;
};

// Records a run. O(log ranges) per event of a segment, O(1) for others; about 60 bytes per
// allocation and 10 per event.
class RunLogObserver final : public Observer {
 public:
  // The position of an event of an exact replay (`positions_are_events`) is its index among the
  // traced events; otherwise OnRequest() provides it.
  RunLogObserver(const Schedule& schedule, bool positions_are_events);
  RunLogObserver(const RunLogObserver&) = delete;
  RunLogObserver& operator=(const RunLogObserver&) = delete;

  Needs needs() const override { return {.requests = !positions_are_events_}; }
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnRequest(size_t request) override;
  void OnEvent(const Event& event) override;
  const RunLog& log() const { return log_; }

 private:
  void AddAllocation(const Event& event);
  void AddFree(const Event& event);
  void AddRange(const RunLog::Range& range);
  void RemoveRange(Address begin, Bytes size, uint32_t moment);

  const Schedule& schedule_;
  const bool positions_are_events_;
  uint32_t position_ = 0;
  uint32_t traced_ = 0;
  std::vector<uint32_t> allocation_of_id_;
  std::map<Address, uint32_t> live_ranges_;
  size_t first_unused_range_ = 0;  // nothing was placed in the ranges from here on yet
  RunLog log_;
};

}  // namespace memreplay
