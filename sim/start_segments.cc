#include "sim/start_segments.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/size_rules.h"

namespace memreplay {
namespace {

class SegmentHistory {
 public:
  explicit SegmentHistory(const Schedule& schedule) : schedule_(schedule) {
    if (schedule.final_state() == nullptr) return;
    for (const SegmentInfo& segment : *schedule.final_state()) {
      SegmentInfo bare = segment;
      bare.blocks.clear();
      segments_.emplace(segment.address, std::move(bare));
    }
  }

  MemoryState Undo() && {
    const absl::Span<const Event> events = schedule_.recorded();
    for (size_t i = events.size(); i-- > 0;) {
      const Event& event = events[i];
      switch (event.kind) {
        case EventKind::kSegmentAlloc: segments_.erase(event.address); break;
        case EventKind::kSegmentFree: Add(event, /*is_expandable=*/false); break;
        case EventKind::kSegmentMap: Unmap(event.address, event.address + event.size); break;
        case EventKind::kSegmentUnmap: Add(event, /*is_expandable=*/true); break;
        default: break;
      }
    }
    MemoryState result;
    for (auto& [address, segment] : segments_) {
      SegmentInfo* last = result.empty() ? nullptr : &result.back();
      if (last != nullptr && last->is_expandable && segment.is_expandable &&
          last->address + last->total_size == segment.address && last->stream == segment.stream &&
          last->is_large == segment.is_large && last->pool_id == segment.pool_id) {
        last->total_size += segment.total_size;
      } else {
        result.push_back(std::move(segment));
      }
    }
    return result;
  }

 private:
  void Add(const Event& event, bool is_expandable) {
    SegmentInfo segment;
    segment.address = event.address;
    segment.total_size = event.size;
    segment.stream = schedule_.stream_handle(event.stream);
    segment.pool_id = schedule_.trace().pools[event.pool];
    segment.is_expandable = is_expandable;
    segment.is_large = is_expandable ? HoldsLargeBlocks(event.address, event.address + event.size)
                                     : event.size > kSmallBuffer;
    segment.stack = event.text_or_stack;
    segments_.insert_or_assign(event.address, std::move(segment));
  }

  // Takes [begin, end) out of the mapped ranges.
  void Unmap(Address begin, Address end) {
    auto it = segments_.upper_bound(begin);
    if (it != segments_.begin()) --it;
    while (it != segments_.end() && it->first < end) {
      const SegmentInfo segment = it->second;
      const Address segment_end = segment.address + segment.total_size;
      if (!segment.is_expandable || segment_end <= begin) {
        ++it;
        continue;
      }
      it = segments_.erase(it);
      if (segment.address < begin) {
        SegmentInfo front = segment;
        front.total_size = begin - segment.address;
        segments_.emplace(front.address, std::move(front));
      }
      if (end < segment_end) {
        SegmentInfo back = segment;
        back.address = end;
        back.total_size = segment_end - end;
        segments_.emplace(back.address, std::move(back));
      }
    }
  }

  bool HoldsLargeBlocks(Address begin, Address end) {
    if (!large_known_) {
      large_known_ = true;
      for (const Event& event : schedule_.recorded()) {
        const bool names_block = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
        if (names_block && event.size > kSmallSize) large_.push_back(event.address);
      }
      std::sort(large_.begin(), large_.end());
    }
    const auto it = std::lower_bound(large_.begin(), large_.end(), begin);
    return it != large_.end() && *it < end;
  }

  const Schedule& schedule_;
  std::map<Address, SegmentInfo> segments_;
  bool large_known_ = false;
  std::vector<Address> large_;  // where blocks of large pools were seen, ascending
};

}  // namespace

MemoryState StartSegments(const Schedule& schedule) { return SegmentHistory(schedule).Undo(); }

}  // namespace memreplay
