#include "sim/observe/holders.h"

#include <algorithm>

namespace memreplay {

void HoldersObserver::OnStart(const MemoryState& start, const Allocator& /*allocator*/) {
  for (const SegmentInfo& segment : start) {
    const auto pool = std::find(trace_.pools.begin(), trace_.pools.end(), segment.pool_id);
    const auto stream = std::find(trace_.streams.begin(), trace_.streams.end(), segment.stream);
    Held& held =
        Of(pool == trace_.pools.end() ? 0 : static_cast<uint16_t>(pool - trace_.pools.begin()),
           static_cast<uint32_t>(stream - trace_.streams.begin()));
    held.reserved += segment.total_size;
    reserved_ += segment.total_size;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state != BlockState::kInactive) held.active += block.size;
    }
  }
  peak_ = reserved_;
  for (auto& [key, held] : held_) {
    held.told.reserved = held.reserved;
    held.told.active = held.active;
    held.told.most_cached = held.reserved - held.active;
  }
}

HoldersObserver::Held& HoldersObserver::Of(uint16_t pool, uint32_t stream) {
  const auto [it, is_new] = held_.try_emplace({pool, stream});
  if (is_new) {
    it->second.told.pool = pool;
    it->second.told.stream = stream;
  }
  return it->second;
}

void HoldersObserver::OnEvent(const Event& event) {
  const uint64_t index = events_++;
  const Bytes block = event.block_size == Bytes(0) ? event.size : event.block_size;
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
      Of(event.pool, event.stream).reserved += event.size;
      reserved_ += event.size;
      if (reserved_ > peak_) {
        peak_ = reserved_;
        new_peak_ = true;
      }
      return;  // belongs to the request that is being served
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      Of(event.pool, event.stream).reserved -= event.size;
      reserved_ -= event.size;
      return;
    case EventKind::kAlloc: Of(event.pool, event.stream).active += block; break;
    case EventKind::kFreeCompleted: Of(event.pool, event.stream).active -= block; break;
    case EventKind::kOom: break;
    default: return;
  }
  Held& held = Of(event.pool, event.stream);
  const Bytes cached = held.reserved - held.active;
  if (cached > held.told.most_cached) {
    held.told.most_cached = cached;
    held.told.most_cached_event = index;
  }
  if (!new_peak_ || event.kind == EventKind::kFreeCompleted) return;
  new_peak_ = false;
  for (auto& [key, each] : held_) {
    each.told.reserved = each.reserved;
    each.told.active = each.active;
  }
}

std::vector<Holder> HoldersObserver::Holders() const {
  std::vector<Holder> holders;
  for (const auto& [key, held] : held_) {
    if (held.told.reserved > Bytes() || held.told.most_cached > Bytes()) {
      holders.push_back(held.told);
    }
  }
  return holders;
}

}  // namespace memreplay
