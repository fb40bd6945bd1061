#include "report/device/held.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/workload/peak_holdings.h"
#include "trace/value/memory_state.h"

namespace memreplay {
namespace {

struct HeldByStack {
  uint32_t stack = 0;
  int64_t bytes = 0;
  int64_t requested = 0;
  int64_t allocations = 0;
};

// Lists holders. `all` has most first.
proto::Held List(const std::vector<HeldByStack>& all, StackNames& names,
                 const HeldOptions& options) {
  proto::Held held;
  held.set_filter(options.filter);
  for (const HeldByStack& one : all) {
    const bool is_listed = static_cast<size_t>(held.stacks_size()) < options.top;
    proto::Stack stack;
    if (is_listed || !options.filter.empty()) stack = names.Of(one.stack);
    if (!options.filter.empty() && !StackHas(stack, options.filter)) continue;
    held.set_bytes(held.bytes() + one.bytes);
    held.set_requested_bytes(held.requested_bytes() + one.requested);
    held.set_allocations(held.allocations() + one.allocations);
    if (!is_listed) {
      held.set_left_out_stacks(held.left_out_stacks() + 1);
      continue;
    }
    proto::HeldBytes& row = *held.add_stacks();
    *row.mutable_stack() = std::move(stack);
    row.set_bytes(one.bytes);
    row.set_requested_bytes(one.requested);
    row.set_allocations(one.allocations);
  }
  return held;
}

}  // namespace

proto::Held HeldAtEnd(const Trace& trace, size_t device_index, StackNames& names,
                      const HeldOptions& options) {
  const DeviceTrace& device = trace.devices[device_index];
  absl::flat_hash_map<uint32_t, HeldByStack> by_stack;
  for (const SegmentInfo& segment : device.final_state) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      HeldByStack& sum = by_stack[block.stack];
      sum.stack = block.stack;
      sum.bytes += block.size.signed_value();
      sum.requested += block.requested_size.signed_value();
      ++sum.allocations;
    }
  }
  std::vector<HeldByStack> all;
  // In any order.
  for (const auto& [stack, sum] : by_stack) all.push_back(sum);
  std::ranges::sort(all, [](const HeldByStack& a, const HeldByStack& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack < b.stack;
  });
  proto::Held held = List(all, names, options);
  held.set_at_event(static_cast<int64_t>(device.events.size()));
  return held;
}

proto::Held HeldAtPeak(const Schedule& schedule, StackNames& names, const HeldOptions& options) {
  const PeakHoldings peak = HoldingsAtPeak(schedule);
  std::vector<HeldByStack> all;
  for (const PeakHolding& holding : peak.stacks) {
    all.push_back({holding.stack, 0, holding.requested.signed_value(),
                   static_cast<int64_t>(holding.allocations)});
  }
  proto::Held held = List(all, names, options);
  held.set_at_event(schedule.requests().empty()
                        ? -1
                        : static_cast<int64_t>(EventOfRequest(schedule, peak.request)));
  return held;
}

}  // namespace memreplay
