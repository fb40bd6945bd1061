// Why memory ran out.
#ifndef MEMREPLAY_REPORT_ASK_OOM_H_
#define MEMREPLAY_REPORT_ASK_OOM_H_

#include <optional>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/answer/oom_report.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// As it was recorded, or on a device as other commands take it, with the control of what is
// tried. Errors: AnalyseOom()'s, ReplayWhatIf()'s.
absl::StatusOr<proto::DeviceReport> AskOom(const Schedule& schedule, const ReplaySettings& settings,
                                           const OomReportOptions& options,
                                           ProgressSink* progress = nullptr);

// The answer alone; `settings` have the device. Error: AnalyseOom()'s.
absl::StatusOr<proto::OutOfMemory> WhyOutOfMemory(const Schedule& schedule,
                                                  const ReplaySettings& settings,
                                                  const OomReportOptions& options,
                                                  ProgressSink* progress = nullptr);

// The devices that ran out first; the first of them is the file's answer.
void LiftOom(proto::Report* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_OOM_H_
