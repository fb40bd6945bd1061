// Every allocation, every range of reserved memory and every event of a run, such
// that the state after any event can be told without running it again.
#ifndef MEMREPLAY_REPORT_RUN_RUN_LOG_H_
#define MEMREPLAY_REPORT_RUN_RUN_LOG_H_

#include <cstdint>
#include <map>
#include <vector>

#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// A moment is the number of events that went before: 0 is before the first event,
// n after the n-th.
struct RunLog {
  static constexpr uint32_t kNever = 0xffffffff;

  // In the order of their kAlloc events; the first `start_allocations` were there
  // before, ascending by address.
  struct Allocation {
    AllocationId id = 0;  // of the schedule; of what it does not know, beyond its count
    Address address;
    Bytes block_size;
    Bytes requested_size;
    uint32_t stack = kNoStack;
    uint32_t stream = 0;          // Schedule::stream_handle()
    uint16_t pool = 0;            // Trace::pools
    bool starts_pending = false;  // freed before the first event
  };
  // A segment, or what one event mapped of an expandable one, less what was unmapped
  // since: the rest of a range that lost a part is a new range.
  struct Range {
    Address address;
    Bytes size;
    uint32_t begin = 0;  // moments: there from `begin` to before `end`
    uint32_t end = kNever;
    uint32_t stream = 0;
    uint16_t pool = 0;
    bool is_large = false;
    bool is_expandable = false;
  };
  // What is not an allocation or its free.
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

// O(log ranges) per event of a segment, O(1) for others; about 60 bytes per
// allocation and 10 per event.
class RunLogObserver final : public Observer {
 public:
  // Position of an event: of an exact replay (`positions_are_events`) its number among
  // the traced ones; else OnRequest() provides it.
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
  size_t first_unused_range_ = 0;  // in none of those from here on was anything placed yet
  RunLog log_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_RUN_RUN_LOG_H_
