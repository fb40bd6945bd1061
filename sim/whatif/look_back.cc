#include "sim/whatif/look_back.h"

#include <algorithm>

#include "sim/study/what_if.h"
#include "trace/value/status_macros.h"

namespace memreplay {

absl::StatusOr<LookBack> LookBackOn(const Study& study) {
  const Schedule& schedule = study.schedule();
  LookBack told;
  UsageObserver usage;
  TimelineObserver timeline(usage, kTimelineBuckets);
  MomentsObserver moments(usage);
  HoldersObserver holders(moments, schedule.trace().streams, schedule.pools());
  ObserverList observers = {&usage, &moments, &timeline, &holders};
  const auto tell = [&] {
    told.timeline = timeline.buckets();
    told.holders = holders.Holders();
    told.peak = usage.peak();
  };
  if (schedule.is_program()) {
    ASSIGN_OR_RETURN(const WhatIfResult result,
                     ReplayWhatIf(schedule, study.settings(), &observers));
    tell();
    told.exact_until = result.events;
    return told;
  }
  const ExactReplayResult result = study.WatchExactly(&observers);
  tell();
  told.exact_until = result.exact_until_event;
  told.exactness_reason = result.exactness_reason;
  told.diverged = result.first_divergence.has_value();
  for (const HiddenExtent& hidden : result.start.hidden) {
    if (hidden.choices == 1) continue;
    ++told.open_extents;
    if (hidden.choices == 0) continue;
    told.less += hidden.chosen - hidden.smallest;
    told.more += hidden.largest - hidden.chosen;
  }
  return told;
}

SeenAtPeak SeenWhereMostIsLive(const Schedule& schedule) {
  struct Live {
    Bytes size;
    bool live = false, before = false;
  };
  std::vector<Live> allocations(schedule.allocation_count());
  SeenAtPeak now;
  for (const StartAllocation& start : schedule.start_allocations()) {
    allocations[start.id] = {start.requested_size, true, true};
    now.live += start.requested_size;
  }
  SeenAtPeak peak = now;
  for (const Event& request : schedule.requests()) {
    if (request.id >= allocations.size()) continue;
    Live& allocation = allocations[request.id];
    if (request.kind == EventKind::kAlloc && !allocation.live) {
      allocation = {request.size, true, false};
      now.live += request.size;
      now.seen += request.size;
    } else if (request.kind == EventKind::kFree && allocation.live) {
      allocation.live = false;
      now.live -= allocation.size;
      if (!allocation.before) now.seen -= allocation.size;
    }
    if (now.live > peak.live) peak = now;
  }
  return peak;
}

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
