#include "sim/workload/peak_holdings.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "sim/workload/lifetimes.h"

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

}  // namespace memreplay
