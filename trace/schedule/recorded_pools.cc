#include "trace/schedule/recorded_pools.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/algorithm/container.h"

namespace memreplay {
namespace {

struct Range {
  Address end;
  uint16_t pool;
  bool is_expandable;
};

using Ranges = std::map<Address, Range>;

Ranges::iterator Containing(Ranges& ranges, Address address) {
  const auto it = ranges.upper_bound(address);
  if (it == ranges.begin()) return ranges.end();
  return address < std::prev(it)->second.end ? std::prev(it) : ranges.end();
}

// Returns the pool of the expandable range that is adjacent to [begin, end) and therefore belongs
// to the same reservation.
uint16_t PoolBeside(const Ranges& ranges, Address begin, Address end) {
  auto it = ranges.lower_bound(begin);
  if (it != ranges.end() && it->first == end && it->second.is_expandable) return it->second.pool;
  if (it == ranges.begin()) return 0;
  --it;
  return it->second.end == begin && it->second.is_expandable ? it->second.pool : 0;
}

}  // namespace

std::vector<uint16_t> PoolsBySegments(const MemoryState& final_state,
                                      absl::Span<const PoolId> pools, EventView events) {
  std::vector<uint16_t> told(events.size());
  Ranges ranges;
  for (const SegmentInfo& segment : final_state) {
    const auto pool = absl::c_find(pools, segment.pool_id);
    const auto index = static_cast<uint16_t>(pool == pools.end() ? 0 : pool - pools.begin());
    ranges[segment.address] = {segment.address + segment.total_size, index, segment.is_expandable};
  }
  for (size_t i = events.size(); i-- > 0;) {
    const Event event = events[i];
    told[i] = event.pool;
    const Address end = event.address + event.size;
    switch (event.kind) {
      case EventKind::kAlloc:
      case EventKind::kFree:
      case EventKind::kFreeCompleted:
      case EventKind::kSegmentMap: {
        const auto it = Containing(ranges, event.address);
        if (it != ranges.end()) told[i] = it->second.pool;
        break;  // an address range keeps its pool while it has no pages
      }
      case EventKind::kSegmentAlloc: {
        const auto it = Containing(ranges, event.address);
        if (it == ranges.end()) break;
        told[i] = it->second.pool;
        ranges.erase(it);
        break;
      }
      case EventKind::kSegmentFree: ranges[event.address] = {end, event.pool, false}; break;
      case EventKind::kSegmentUnmap: {
        if (event.pool == 0) {
          if (const auto it = Containing(ranges, event.address); it != ranges.end()) {
            told[i] = it->second.pool;
            break;
          }
          told[i] = PoolBeside(ranges, event.address, end);
        }
        ranges[event.address] = {end, told[i], true};
        break;
      }
      default: break;
    }
  }
  return told;
}

}  // namespace memreplay
