#include "sim/workload/peak_holdings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/bounded.h"

namespace memreplay {
namespace {

struct Live {
  Bytes size;
  uint32_t stack = 0;
  bool live = false;
};

// Applies requests [0, end) and calls `now` with the sum after each.
template <typename Visit>
std::vector<Live> Walk(const Schedule& schedule, size_t end, Visit now) {
  std::vector<Live> allocations(schedule.allocation_count());
  Bytes sum;
  for (const StartAllocation& start : schedule.start_allocations()) {
    if (start.state != BlockState::kAllocated || start.id >= allocations.size()) continue;
    allocations[start.id] = {start.requested_size, start.stack, true};
    sum += start.requested_size;
  }
  const RequestView requests = schedule.requests();
  for (size_t i = 0; i < end; ++i) {
    const Event request = requests[i];
    if (request.id >= allocations.size()) continue;
    Live& allocation = allocations[request.id];
    if (request.kind == EventKind::kAlloc && !allocation.live) {
      if (RanOutWhenRecorded(schedule, i)) continue;
      allocation = {request.size, request.text_or_stack, true};
      sum += request.size;
    } else if (request.kind == EventKind::kFree && allocation.live) {
      allocation.live = false;
      sum -= allocation.size;
    }
    now(i, sum);
  }
  return allocations;
}

}  // namespace

PeakHoldings HoldingsAtPeak(const Schedule& schedule) {
  PeakHoldings peak;
  Walk(schedule, schedule.requests().size(), [&peak](size_t request, Bytes sum) {
    if (sum <= peak.requested) return;
    peak.requested = sum;
    peak.request = request;
  });
  const size_t end = schedule.requests().empty() ? 0 : peak.request + 1;
  absl::flat_hash_map<uint32_t, size_t> rows;
  const std::vector<Live> allocations = Walk(schedule, end, [](size_t, Bytes) {});
  for (AllocationId id = 0; id < allocations.size(); ++id) {
    const Live& allocation = allocations[id];
    if (!allocation.live) continue;
    const auto [row, is_new] = rows.try_emplace(allocation.stack, peak.stacks.size());
    if (is_new) peak.stacks.push_back({allocation.stack, Bytes(), 0, id});
    PeakHolding& holding = peak.stacks[row->second];
    holding.requested += allocation.size;
    ++holding.allocations;
    if (allocation.size > allocations[holding.largest].size) holding.largest = id;
  }
  std::sort(peak.stacks.begin(), peak.stacks.end(), [](const PeakHolding& a, const PeakHolding& b) {
    return a.requested != b.requested ? a.requested > b.requested : a.stack < b.stack;
  });
  return peak;
}

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
