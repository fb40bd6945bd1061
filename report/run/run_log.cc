#include "report/run/run_log.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "sim/model/allocator.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

// Returns the position of a value in a small table; 0 if the table does not have it.
template <typename Table, typename Value>
size_t IndexIn(const Table& table, const Value& value) {
  const auto found = absl::c_find(table, value);
  return found == table.end() ? 0 : static_cast<size_t>(found - table.begin());
}

}  // namespace

RunLogObserver::RunLogObserver(const Schedule& schedule, bool positions_are_events)
    : schedule_(schedule),
      positions_are_events_(positions_are_events),
      allocation_of_id_(schedule.allocation_count(), RunLog::kNever) {
  const size_t events = std::max(schedule.recorded().size(), schedule.requests().size());
  log_.kinds.reserve(events);
  log_.positions.reserve(events);
  log_.allocations.reserve(schedule.allocation_count());
  log_.freed.reserve(2 * size_t{schedule.allocation_count()});
  log_.free_stacks.reserve(schedule.allocation_count());
}

void RunLogObserver::OnStart(const MemoryState& /*state*/, const Allocator& allocator) {
  const Trace& trace = schedule_.trace();
  for (const SegmentInfo& segment : allocator.Segments()) {
    if (segment.total_size == Bytes(0)) continue;  // it only shows where a reservation begins
    RunLog::Range range;
    range.address = segment.address;
    range.size = segment.total_size;
    range.stream = static_cast<uint32_t>(IndexIn(trace.streams, segment.stream));
    range.pool = static_cast<uint16_t>(IndexIn(schedule_.pools(), segment.pool_id));
    range.is_large = segment.is_large;
    range.is_expandable = segment.is_expandable;
    AddRange(range);
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      if (block.id < allocation_of_id_.size()) {
        allocation_of_id_[block.id] = static_cast<uint32_t>(log_.allocations.size());
      }
      log_.allocations.push_back({.id = block.id,
                                  .address = block.address,
                                  .block_size = block.size,
                                  .requested_size = block.requested_size,
                                  .stack = block.stack,
                                  .stream = range.stream,
                                  .pool = range.pool,
                                  .starts_pending = block.state == BlockState::kPendingFree});
    }
  }
  first_unused_range_ = log_.ranges.size();
  log_.start_ranges = log_.ranges.size();
  log_.start_allocations = log_.allocations.size();
}

void RunLogObserver::OnRequest(size_t request) {
  if (!positions_are_events_) {
    position_ = static_cast<uint32_t>(EventOfRequest(schedule_, request));
  }
}

void RunLogObserver::AddAllocation(const Event& event) {
  if (event.id < allocation_of_id_.size()) {
    allocation_of_id_[event.id] = static_cast<uint32_t>(log_.allocations.size());
  }
  const Bytes block = event.block_size == Bytes(0) ? event.size : event.block_size;
  log_.allocations.push_back({.id = event.id,
                              .address = event.address,
                              .block_size = block,
                              .requested_size = event.size,
                              .stack = event.text_or_stack,
                              .stream = event.stream,
                              .pool = event.pool});
  // The kind of the first block in a range decides the kind of the range.
  for (size_t i = first_unused_range_; i < log_.ranges.size(); ++i) {
    RunLog::Range& range = log_.ranges[i];
    if (event.address < range.address || event.address >= range.address + range.size) continue;
    range.is_large = block > kSmallSize;
    range.pool = event.pool;
    first_unused_range_ = i + 1;
    break;
  }
}

void RunLogObserver::AddFree(const Event& event) {
  const uint32_t allocation =
      event.id < allocation_of_id_.size() ? allocation_of_id_[event.id] : RunLog::kNever;
  if (allocation == RunLog::kNever) {
    // Its allocation is unknown, so this is an event like any other.
    log_.others.push_back({static_cast<uint32_t>(log_.kinds.size()), event});
    log_.kinds.back() = EventKind::kMark;
    return;
  }
  log_.freed.push_back(allocation);
  if (event.kind == EventKind::kFree) log_.free_stacks.push_back(event.text_or_stack);
}

void RunLogObserver::AddRange(const RunLog::Range& range) {
  live_ranges_[range.address] = static_cast<uint32_t>(log_.ranges.size());
  log_.ranges.push_back(range);
}

void RunLogObserver::RemoveRange(Address begin, Bytes size, uint32_t moment) {
  const Address end = begin + size;
  auto at = live_ranges_.upper_bound(begin);
  if (at != live_ranges_.begin()) --at;
  while (at != live_ranges_.end() && at->first < end) {
    const uint32_t index = at->second;
    RunLog::Range range = log_.ranges[index];
    const Address range_end = range.address + range.size;
    if (range_end <= begin) {
      ++at;
      continue;
    }
    log_.ranges[index].end = moment;
    at = live_ranges_.erase(at);
    const Address from = range.address;
    range.begin = moment;
    if (from < begin) {
      range.size = begin - from;
      AddRange(range);
    }
    if (range_end > end) {
      range.address = end;
      range.size = range_end - end;
      AddRange(range);
    }
    at = live_ranges_.lower_bound(end);
    // This is the part between `begin` and `end` beyond this range.
    if (range_end < end) at = live_ranges_.lower_bound(range_end);
  }
}

void RunLogObserver::OnEvent(const Event& event) {
  const bool traced =
      !IsRequest(event.kind) || event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
  if (positions_are_events_) position_ = traced_;
  traced_ += traced;
  log_.kinds.push_back(event.kind);
  log_.positions.push_back(position_);
  const auto moment = static_cast<uint32_t>(log_.kinds.size());
  switch (event.kind) {
    case EventKind::kAlloc: return AddAllocation(event);
    case EventKind::kFree:
    case EventKind::kFreeCompleted: return AddFree(event);
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
      AddRange({.address = event.address,
                .size = event.size,
                .begin = moment,
                .stream = event.stream,
                .pool = event.pool,
                .is_large = event.size > kSmallBuffer,
                .is_expandable = event.kind == EventKind::kSegmentMap});
      break;
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap: RemoveRange(event.address, event.size, moment); break;
    default: break;
  }
  log_.others.push_back({moment - 1, event});
}

}  // namespace memreplay
