#include "report/ask/replay.h"

#include <utility>

#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/device/inventory.h"
#include "report/words/stack_names.h"
#include "sim/recording/sampled_replay.h"
#include "sim/study/what_if.h"
#include "trace/value/status_macros.h"

namespace memreplay {

namespace {

absl::StatusOr<ReplayAnswer> Replayed(const Study& study, StartPolicy start, Observer* watchers,
                                      StackNames& names) {
  const Schedule& schedule = study.schedule();
  const DeviceContents contents = DescribeContents(schedule);
  ReplayAnswer answer;
  if (study.settings().as_recorded) {
    if (watchers == nullptr) {
      answer.report = ReportReplay(study, contents.peaks, study.AsRecorded());
      DescribeBlocks(study, study.AsRecorded().exact.segments, names,
                     answer.report.mutable_segments());
      return answer;
    }
    SampledReplay replay = study.WatchAsRecorded(watchers);
    answer.report = ReportReplay(study, contents.peaks, replay);
    answer.segments = std::move(replay.exact.segments);
    DescribeBlocks(study, answer.segments, names, answer.report.mutable_segments());
    return answer;
  }
  const ReplaySettings on_card = study.OnCard(study.settings());
  WhatIfOptions options = study.Options(start);
  options.fragmentation = true;
  ASSIGN_OR_RETURN(WhatIfResult result, ReplayWhatIf(schedule, on_card, watchers, options));
  answer.report = ReportWhatIf(schedule, on_card, contents.peaks, result);
  RETURN_IF_ERROR(AddControl(study, &answer.report));
  AddUnseen(study, contents.inventory, &answer.report);
  ASSIGN_OR_RETURN(const Bytes other, study.PeakInOtherOrder(on_card, start));
  answer.report.set_other_order_peak_reserved_bytes(other.signed_value());
  answer.segments = std::move(result.segments);
  DescribeBlocks(study, answer.segments, names, answer.report.mutable_segments());
  return answer;
}

}  // namespace

absl::StatusOr<ReplayAnswer> AskReplay(const Study& study, StartPolicy start, Observer* watchers) {
  StackNames names(study.trace());
  absl::StatusOr<ReplayAnswer> answer = Replayed(study, start, watchers, names);
  if (!answer.ok()) return answer;
  AddCategories(study, names, &answer->report);
  return answer;
}

absl::StatusOr<proto::DeviceReport> AskCurrent(const Study& study) {
  const Schedule& schedule = study.schedule();
  const DeviceContents contents = DescribeContents(schedule);
  proto::DeviceReport report;
  if (schedule.is_program()) {
    ASSIGN_OR_RETURN(const WhatIfResult result, study.Run(study.settings()));
    report = ReportWhatIf(schedule, study.settings(), contents.peaks, result);
  } else {
    report = ReportReplay(study, contents.peaks, study.AsRecorded());
    RETURN_IF_ERROR(AddControl(study, &report));
    AddUnseen(study, contents.inventory, &report);
  }
  report.set_capacity_bytes(study.settings().capacity.value_or(Bytes()).signed_value());
  report.clear_segments();
  report.clear_statistics();
  report.clear_rules();
  return report;
}

absl::StatusOr<std::optional<Bytes>> PeakCompletedAtOnce(const Study& study,
                                                         const ReplaySettings& settings) {
  const Schedule& schedule = study.schedule();
  // Each free that completed late has a stream of its own, so there was none.
  if (schedule.stream_count() == schedule.trace().streams.size()) return std::nullopt;
  ASSIGN_OR_RETURN(const WhatIfResult as_it_was, study.Run(settings));
  WhatIfOptions options = study.Options();
  options.complete_at_once = true;
  ASSIGN_OR_RETURN(const WhatIfResult at_once, ReplayWhatIf(schedule, settings, nullptr, options));
  if (at_once.peak.reserved() == as_it_was.peak.reserved()) return std::nullopt;
  return at_once.peak.reserved();
}

}  // namespace memreplay
