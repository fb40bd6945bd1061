#include "sim/observe/holders.h"

#include <algorithm>

namespace memreplay {

void HoldersObserver::OnStart(const MemoryState& start, const Allocator& /*allocator*/) {
  std::map<PoolId, uint16_t> pools;
  for (size_t i = 0; i < pools_.size(); ++i) {
    pools.emplace(pools_[i], static_cast<uint16_t>(i));
  }
  for (const SegmentInfo& segment : start) {
    const auto pool = pools.find(segment.pool_id);
    // Streams are ascending.
    const auto stream = std::lower_bound(streams_.begin(), streams_.end(), segment.stream);
    Held& held = Of(pool == pools.end() ? uint16_t{0} : pool->second,
                    static_cast<uint32_t>(stream - streams_.begin()));
    held.reserved += segment.total_size;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state != BlockState::kInactive) held.active += block.size;
    }
  }
  for (auto& [key, held] : held_) {
    held.told.reserved = held.reserved;
    held.told.active = held.active;
    held.told.max_cached = held.reserved - held.active;
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

HoldersObserver::Held& HoldersObserver::Changing(uint16_t pool, uint32_t stream) {
  Held& held = Of(pool, stream);
  if (!held.is_changed) {
    held.is_changed = true;
    changed_.push_back(&held);
  }
  return held;
}

void HoldersObserver::OnEvent(const Event& event) {
  const uint64_t index = events_++;
  const Bytes block = event.block_size == Bytes(0) ? event.size : event.block_size;
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
      Changing(event.pool, event.stream).reserved += event.size;
      return;  // belongs to the request that is being served
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      Changing(event.pool, event.stream).reserved -= event.size;
      return;
    case EventKind::kAlloc: Changing(event.pool, event.stream).active += block; break;
    case EventKind::kFreeCompleted: Changing(event.pool, event.stream).active -= block; break;
    case EventKind::kOom: break;
    default: return;
  }
  Held& held = Of(event.pool, event.stream);
  const Bytes cached = held.reserved - held.active;
  if (cached > held.told.max_cached) {
    held.told.max_cached = cached;
    held.told.most_cached_event = index;
  }
  if (moments_.moments().at_peak.event != index) return;
  for (Held* const each : changed_) {
    each->told.reserved = each->reserved;
    each->told.active = each->active;
    each->is_changed = false;
  }
  changed_.clear();
}

std::vector<Holder> HoldersObserver::Holders() const {
  std::vector<Holder> holders;
  for (const auto& [key, held] : held_) {
    if (held.told.reserved > Bytes() || held.told.max_cached > Bytes()) {
      holders.push_back(held.told);
    }
  }
  return holders;
}

}  // namespace memreplay
