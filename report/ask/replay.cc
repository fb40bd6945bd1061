#include "report/ask/replay.h"

#include <utility>

#include "report/ask/device_report.h"
#include "report/ask/inventory.h"
#include "report/ask/unseen.h"
#include "sim/recording/sampled_replay.h"

namespace memreplay {

absl::StatusOr<ReplayAnswer> AskReplay(const Schedule& schedule, const ReplaySettings& settings,
                                       StartPolicy start, Observer* watchers) {
  const DeviceContents contents = DescribeContents(schedule);
  ReplayAnswer answer;
  if (settings.as_recorded) {
    SampledReplay replay = ReplaySampled(schedule, settings, watchers);
    answer.report = ReportReplay(schedule, settings, contents.peaks, replay);
    answer.segments = std::move(replay.exact.segments);
    return answer;
  }
  const absl::StatusOr<WhatIfBasis> basis = FindBasis(schedule, settings);
  if (!basis.ok()) return basis.status();
  const ReplaySettings on_card = OnRecordedCard(settings, basis->card);
  WhatIfOptions options;
  options.fragmentation = true;
  options.start = start;
  if (!schedule.is_program()) options.recorded_start = &basis->start;
  absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, on_card, watchers, options);
  if (!result.ok()) return result.status();
  answer.report = ReportWhatIf(schedule, on_card, contents.peaks, *result);
  AddControl(*basis, settings.order, &answer.report);
  AddUnseen(schedule, contents.inventory, &answer.report);
  const absl::StatusOr<Bytes> other = PeakInOtherOrder(schedule, on_card, options);
  if (!other.ok()) return other.status();
  answer.report.set_other_order_peak_reserved_bytes(other->signed_value());
  answer.segments = std::move(result->segments);
  return answer;
}

absl::StatusOr<CurrentReplay> AskCurrent(const Schedule& schedule, const ReplaySettings& settings) {
  CurrentReplay current;
  const DeviceContents contents = DescribeContents(schedule);
  if (schedule.is_program()) {
    const absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, settings);
    if (!result.ok()) return result.status();
    current.report = ReportWhatIf(schedule, settings, contents.peaks, *result);
  } else {
    ReplaySettings as_recorded = settings;
    as_recorded.config = settings.recorded_config;
    const SampledReplay replay = ReplaySampled(schedule, as_recorded, nullptr);
    current.report = ReportReplay(schedule, as_recorded, contents.peaks, replay);
    absl::StatusOr<WhatIfBasis> basis = FindBasis(schedule, settings, &replay.exact);
    if (!basis.ok()) return basis.status();
    current.basis = *std::move(basis);
    AddControl(current.basis, settings.order, &current.report);
    AddUnseen(schedule, contents.inventory, &current.report);
  }
  current.report.set_capacity_bytes(settings.capacity.value_or(Bytes()).signed_value());
  current.report.clear_segments();
  current.report.clear_statistics();
  current.report.clear_rules();
  return current;
}

absl::StatusOr<std::optional<Bytes>> PeakCompletedAtOnce(const Schedule& schedule,
                                                         const ReplaySettings& settings) {
  // Each free that completed late has a stream of its own.
  if (schedule.stream_count() == schedule.trace().streams.size()) return std::nullopt;
  WhatIfOptions options;
  const absl::StatusOr<WhatIfResult> as_it_was = ReplayWhatIf(schedule, settings, nullptr, options);
  if (!as_it_was.ok()) return as_it_was.status();
  options.complete_at_once = true;
  const absl::StatusOr<WhatIfResult> at_once = ReplayWhatIf(schedule, settings, nullptr, options);
  if (!at_once.ok()) return at_once.status();
  if (at_once->peak.reserved() == as_it_was->peak.reserved()) return std::nullopt;
  return at_once->peak.reserved();
}

}  // namespace memreplay
