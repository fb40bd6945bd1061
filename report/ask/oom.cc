#include "report/ask/oom.h"

#include <algorithm>
#include <utility>

#include "report/answer/build_report.h"
#include "report/answer/inventory.h"
#include "report/answer/unseen.h"
#include "sim/oom/oom_analysis.h"
#include "sim/whatif/control.h"

namespace memreplay {

absl::StatusOr<proto::OutOfMemory> WhyOutOfMemory(const Schedule& schedule,
                                                  const ReplaySettings& settings,
                                                  const OomReportOptions& options,
                                                  ProgressSink* progress) {
  const absl::StatusOr<std::optional<OomAnalysis>> analysis =
      AnalyseOom(schedule, settings, kFreedStacks, progress);
  if (!analysis.ok()) return analysis.status();
  return OomReport(schedule, settings, analysis->has_value() ? &**analysis : nullptr, options);
}

absl::StatusOr<proto::DeviceReport> AskOom(const Schedule& schedule, const ReplaySettings& settings,
                                           const OomReportOptions& options,
                                           ProgressSink* progress) {
  const DeviceContents contents = DescribeContents(schedule);
  absl::StatusOr<WhatIfBasis> basis = WhatIfBasis();
  const bool is_what_if = !settings.as_recorded || contents.peaks.ooms() > 0;
  if (is_what_if) basis = FindBasis(schedule, settings);
  if (!basis.ok()) return basis.status();
  const ReplaySettings on_card =
      settings.as_recorded ? settings : OnRecordedCard(settings, basis->card);
  absl::StatusOr<proto::OutOfMemory> oom = WhyOutOfMemory(schedule, on_card, options, progress);
  if (!oom.ok()) return oom.status();
  proto::DeviceReport report = ReportOom(schedule, on_card, contents.peaks, *std::move(oom));
  if (is_what_if) {
    AddControl(*basis, settings.order, &report);
    AddUnseen(schedule, contents.inventory, &report);
  }
  return report;
}

void LiftOom(proto::Report* report) {
  std::stable_partition(report->mutable_devices()->begin(), report->mutable_devices()->end(),
                        [](const proto::DeviceReport& device) { return RanOut(device.oom()); });
  for (const proto::DeviceReport& device : report->devices()) {
    if (!report->has_oom() || (!RanOut(report->oom()) && RanOut(device.oom()))) {
      *report->mutable_oom() = device.oom();
    }
  }
}

}  // namespace memreplay
