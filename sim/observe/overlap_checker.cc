#include "sim/observe/overlap_checker.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memreplay {
namespace {

std::string Extent(Address begin, Address end) {
  return absl::StrFormat("[0x%x, 0x%x)", begin.value(), end.value());
}

// Returns the entry that shares a byte with [begin, end), or the end of the map.
template <typename Map>
typename Map::iterator EntryIn(Map& map, Address begin, Address end) {
  const auto after = map.lower_bound(begin);
  if (after != map.begin()) {
    const auto before = std::prev(after);
    if (before->second.end > begin) return before;
  }
  return after != map.end() && after->first < end ? after : map.end();
}

}  // namespace

void OverlapChecker::OnStart(const MemoryState& start, const Allocator& /*allocator*/) {
  for (const SegmentInfo& segment : start) {
    ranges_[segment.address] = Range{.end = segment.address + segment.total_size,
                                     .stream = kAnyStream,
                                     .pool = 0,
                                     .is_mapped = segment.is_expandable};
    reserved_ += segment.total_size;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      blocks_[block.address] = Block{.end = block.address + block.size,
                                     .size = block.requested_size,
                                     .id = block.id,
                                     .is_pending = block.state == BlockState::kPendingFree};
      if (block.id != kNoAllocation) ids_[block.id] = block.address;
      active_ += block.size;
    }
  }
}

void OverlapChecker::OnEvent(const Event& event) {
  if (!violation_.has_value()) {
    switch (event.kind) {
      case EventKind::kAlloc: OnAlloc(event); break;
      case EventKind::kFree: OnFree(event); break;
      case EventKind::kFreeCompleted: OnFreeCompleted(event); break;
      case EventKind::kSegmentAlloc: OnNewRange(event, /*is_mapped=*/false); break;
      case EventKind::kSegmentMap: OnNewRange(event, /*is_mapped=*/true); break;
      case EventKind::kSegmentFree: OnSegmentFree(event); break;
      case EventKind::kSegmentUnmap: OnSegmentUnmap(event); break;
      case EventKind::kSnapshot:
        if (event.size != active_) {
          Fail(event, absl::StrCat("says ", event.size.value(), " active bytes, there are ",
                                   active_.value()));
        }
        break;
      default: break;
    }
  }
  ++next_event_;
}

void OverlapChecker::Fail(const Event& event, const std::string& message) {
  violation_ =
      Violation{next_event_, absl::StrFormat("event %d, %s of %d bytes at 0x%x: %s", next_event_,
                                             EventKindName(event.kind), event.size.value(),
                                             event.address.value(), message)};
}

OverlapChecker::Blocks::iterator OverlapChecker::BlockIn(Address begin, Address end) {
  return EntryIn(blocks_, begin, end);
}

OverlapChecker::Ranges::iterator OverlapChecker::RangeIn(Address begin, Address end) {
  return EntryIn(ranges_, begin, end);
}

OverlapChecker::Ranges::iterator OverlapChecker::RangeHolding(Address begin, Address end) {
  auto range = ranges_.upper_bound(begin);
  if (range == ranges_.begin()) return ranges_.end();
  --range;
  return range->second.end >= end ? range : ranges_.end();
}

void OverlapChecker::OnAlloc(const Event& event) {
  const Bytes extent = event.block_size == Bytes(0) ? event.size : event.block_size;
  if (extent < event.size) {
    return Fail(event, absl::StrCat("its block has only ", extent.value(), " bytes"));
  }
  const Address end = event.address + extent;
  const auto range = RangeHolding(event.address, end);
  if (range == ranges_.end()) {
    return Fail(event, absl::StrCat("block ", Extent(event.address, end),
                                    " is not within a single segment or mapped range"));
  }
  if (range->second.stream == kAnyStream) {
    range->second.stream = event.stream;
    range->second.pool = event.pool;
  }
  if (range->second.stream != event.stream || range->second.pool != event.pool) {
    return Fail(
        event, absl::StrFormat("for stream %d and pool %d out of memory of stream %d and "
                               "pool %d",
                               event.stream, event.pool, range->second.stream, range->second.pool));
  }
  if (const auto other = BlockIn(event.address, end); other != blocks_.end()) {
    return Fail(event, absl::StrCat("block ", Extent(event.address, end), " overlaps live block ",
                                    Extent(other->first, other->second.end)));
  }
  if (event.id != kNoAllocation && !ids_.emplace(event.id, event.address).second) {
    return Fail(event, absl::StrCat("id ", event.id, " is live already"));
  }
  blocks_[event.address] =
      Block{.end = end, .size = event.size, .id = event.id, .is_pending = false};
  active_ += extent;
}

void OverlapChecker::OnFree(const Event& event) {
  const auto block = blocks_.find(event.address);
  if (block == blocks_.end()) return Fail(event, "no live block begins there");
  if (block->second.is_pending) return Fail(event, "its free was already requested");
  if (block->second.size != event.size) {
    return Fail(event, absl::StrCat("the block was requested with ", block->second.size.value()));
  }
  if (event.id != kNoAllocation && block->second.id != event.id) {
    return Fail(event, absl::StrCat("by id ", event.id, ", the block has id ", block->second.id));
  }
  block->second.is_pending = true;
}

void OverlapChecker::OnFreeCompleted(const Event& event) {
  const auto block = blocks_.find(event.address);
  if (block == blocks_.end()) return Fail(event, "no live block begins there");
  if (!block->second.is_pending) return Fail(event, "its free was never requested");
  if (block->second.size != event.size) {
    return Fail(event, absl::StrCat("the block was requested with ", block->second.size.value()));
  }
  active_ -= block->second.end - block->first;
  if (block->second.id != kNoAllocation) ids_.erase(block->second.id);
  blocks_.erase(block);
}

void OverlapChecker::OnNewRange(const Event& event, bool is_mapped) {
  if (event.size == Bytes(0)) return Fail(event, "is empty");
  Address begin = event.address;
  Address end = begin + event.size;
  if (const auto other = RangeIn(begin, end); other != ranges_.end()) {
    return Fail(event, absl::StrCat("overlaps ", Extent(other->first, other->second.end)));
  }
  reserved_ += event.size;
  Range range{.end = end, .stream = event.stream, .pool = event.pool, .is_mapped = is_mapped};
  if (is_mapped) {
    const auto joins = [&](const Range& other) {
      return other.is_mapped && (other.stream == kAnyStream ||
                                 (other.stream == range.stream && other.pool == range.pool));
    };
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.end() && next->first == end && joins(next->second)) {
      range.end = next->second.end;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->second.end == begin && joins(before->second)) {
        begin = before->first;
        ranges_.erase(before);
      }
    }
  }
  ranges_[begin] = range;
}

void OverlapChecker::OnSegmentFree(const Event& event) {
  const auto range = ranges_.find(event.address);
  const Address end = event.address + event.size;
  if (range == ranges_.end() || range->second.is_mapped) {
    return Fail(event, "no segment begins there");
  }
  if (range->second.end != end) {
    return Fail(event, absl::StrCat("the segment is ", Extent(range->first, range->second.end)));
  }
  if (const auto block = BlockIn(event.address, end); block != blocks_.end()) {
    return Fail(event, absl::StrCat("holds live block ", Extent(block->first, block->second.end)));
  }
  reserved_ -= event.size;
  ranges_.erase(range);
}

void OverlapChecker::OnSegmentUnmap(const Event& event) {
  const Address begin = event.address;
  const Address end = begin + event.size;
  const auto holder = RangeHolding(begin, end);
  if (holder == ranges_.end() || !holder->second.is_mapped || event.size == Bytes(0)) {
    return Fail(event, "not all of it is mapped");
  }
  if (const auto block = BlockIn(begin, end); block != blocks_.end()) {
    return Fail(event, absl::StrCat("holds live block ", Extent(block->first, block->second.end)));
  }
  reserved_ -= event.size;
  const Range whole = holder->second;
  if (holder->first == begin) {
    ranges_.erase(holder);
  } else {
    holder->second.end = begin;
  }
  if (end < whole.end) ranges_[end] = whole;
}

}  // namespace memreplay
