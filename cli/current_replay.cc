#include "cli/current_replay.h"

#include <utility>

#include "report/answer/build_report.h"
#include "report/answer/inventory.h"
#include "sim/recording/sampled_replay.h"
#include "sim/whatif/what_if.h"

namespace memreplay {

absl::StatusOr<CurrentReplay> ReplayCurrent(const Schedule& schedule, size_t device_index,
                                            const ReplaySettings& settings) {
  CurrentReplay current;
  const proto::RecordedPeaks recorded = DescribeContents(schedule.trace(), device_index).peaks;
  if (schedule.is_program()) {
    const absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, settings);
    if (!result.ok()) return result.status();
    current.report = ReportWhatIf(schedule, settings, recorded, *result);
  } else {
    ReplaySettings as_recorded = settings;
    as_recorded.config = settings.recorded_config;
    SampledReplay replay = ReplaySampled(schedule, as_recorded, nullptr);
    current.report = ReportReplay(schedule, as_recorded, recorded, replay);
    absl::StatusOr<WhatIfBasis> basis = FindBasis(schedule, settings, &replay.exact);
    if (!basis.ok()) return basis.status();
    current.basis = *std::move(basis);
    AddControl(current.basis, settings.order, &current.report);
  }
  current.report.set_capacity_bytes(settings.capacity.value_or(Bytes()).signed_value());
  current.report.clear_segments();
  current.report.clear_statistics();
  current.report.clear_rules();
  return current;
}

}  // namespace memreplay
