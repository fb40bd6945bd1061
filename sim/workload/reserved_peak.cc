#include "sim/workload/reserved_peak.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "trace/value/bounded.h"

namespace memreplay {

uint64_t AllocationsBeforePeak(const Schedule& schedule) {
  // These are signed and from an unknown start, because only differences matter.
  int64_t reserved = 0;
  int64_t live = 0;
  uint64_t allocations = 0;
  std::vector<Bytes> sizes(schedule.allocation_count());
  for (const StartAllocation& start : schedule.start_allocations()) {
    sizes[start.id] = start.requested_size;
  }
  // The moments at which more was live than at any earlier one with as much reserved.
  struct Record {
    int64_t live;
    uint64_t before;  // allocs and ooms
  };
  int64_t peak = 0;  // of reserved
  std::vector<Record> records;
  const auto look = [&]() __attribute__((always_inline)) {
    if (records.empty() || reserved > peak) {
      records.clear();
      peak = reserved;
    }
    if (reserved == peak && (records.empty() || live > records.back().live)) {
      records.push_back({live, allocations});
    }
    ++allocations;
  };
  const auto pass = [&](const Event& event) __attribute__((always_inline)) {
    switch (event.kind) {
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentMap:
        reserved = BoundedSum(reserved, event.size.signed_value());
        return;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap:
        reserved = BoundedSum(reserved, -Bounded(event.size.signed_value()));
        return;
      case EventKind::kFree:
      case EventKind::kFreeCompleted:
        if (event.id == kNoAllocation) return;
        live = BoundedSum(live, -Bounded(std::exchange(sizes[event.id], Bytes(0)).signed_value()));
        return;
      case EventKind::kAlloc:
        if (event.id != kNoAllocation) sizes[event.id] = event.size;
        live = BoundedSum(live, event.size.signed_value());
        look();
        return;
      case EventKind::kOom: look(); return;
      default: return;
    }
  };
  if (schedule.is_program()) {
    for (const Event& event : schedule.requests()) pass(event);
  } else {
    for (const Event& event : schedule.recorded()) pass(event);
  }
  if (records.empty()) return 0;
  // Blocks are larger than what was requested, so the moment may be a little earlier.
  const int64_t most = records.back().live;
  const int64_t near = most - std::abs(most) / 32;  // negative if the start is not in the file
  return std::find_if(records.begin(), records.end(),
                      [near](const Record& record) { return record.live >= near; })
      ->before;
}

}  // namespace memreplay
