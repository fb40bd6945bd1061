#include "report/ask/oom.h"

#include <algorithm>

#include "sim/oom/oom_analysis.h"

namespace memreplay {

absl::StatusOr<proto::OutOfMemory> AskOom(const Schedule& schedule, const ReplaySettings& settings,
                                          const OomReportOptions& options) {
  const absl::StatusOr<std::optional<OomAnalysis>> analysis = AnalyseOom(schedule, settings);
  if (!analysis.ok()) return analysis.status();
  return OomReport(schedule, settings, analysis->has_value() ? &**analysis : nullptr, options);
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
