#include "sim/whatif/look_back.h"

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

}  // namespace memreplay
