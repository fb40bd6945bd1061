#include "sim/stream_cost.h"

#include "sim/oom_counterfactuals.h"
#include "sim/size_rules.h"
#include "sim/what_if.h"

namespace memreplay {

absl::StatusOr<StreamCost> CostOfStreams(const Schedule& schedule, const ReplaySettings& settings) {
  ReplaySettings unlimited = settings;
  unlimited.as_recorded = false;
  unlimited.capacity.reset();
  const absl::StatusOr<WhatIfResult> as_is = ReplayWhatIf(schedule, unlimited);
  if (!as_is.ok()) return as_is.status();
  OneStream one_stream(schedule);
  WhatIfOptions options;
  options.run.intervention = &one_stream;
  const absl::StatusOr<WhatIfResult> merged = ReplayWhatIf(schedule, unlimited, nullptr, options);
  if (!merged.ok()) return merged.status();
  return StreamCost{as_is->peak.reserved(), merged->peak.reserved()};
}

HistoryBar UncertaintyOfStart(const Schedule& schedule) {
  HistoryBar bar;
  for (const StartAllocation& start : schedule.start_allocations()) {
    if (start.block_size.has_value() || start.requested_size <= kSmallSize) continue;
    ++bar.blocks;
    bar.bytes += kSmallSize;
  }
  return bar;
}

}  // namespace memreplay
