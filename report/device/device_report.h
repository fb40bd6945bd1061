// Makes a Report of a run or a file.
#ifndef MEMREPLAY_REPORT_DEVICE_DEVICE_REPORT_H_
#define MEMREPLAY_REPORT_DEVICE_DEVICE_REPORT_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "proto/report.pb.h"
#include "report/device/inventory.h"
#include "sim/confirm/device_run.h"
#include "sim/recording/replay_settings.h"
#include "sim/recording/sampled_replay.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns a report with the context but no devices. `file` is as given on the command line.
proto::Report StartReport(std::string_view command, std::string_view file, const Trace& trace);
// Returns the report of a file that gives no answer.
proto::Report FailedReport(std::string_view command, std::string_view file, std::string_view error);

// Reports a file without simulating anything; peaks are those recorded. `device_index` is a
// position in trace.devices.
proto::DeviceReport ReportContents(const Trace& trace, size_t device_index,
                                   const ProfileChoice& torch);

// Reports a recording that was replayed as it happened. `recorded` is from DescribeContents().
proto::DeviceReport ReportReplay(const Study& study, const proto::RecordedPeaks& recorded,
                                 const SampledReplay& replay);

// Reports a recording under other settings, or a written schedule.
proto::DeviceReport ReportWhatIf(const Schedule& schedule, const ReplaySettings& settings,
                                 const proto::RecordedPeaks& recorded, const WhatIfResult& result);

// Adds the control of a recording; does nothing for a written schedule. The report must have what
// was recorded. Error: ReplayWhatIf()'s.
absl::Status AddControl(const Study& study, proto::DeviceReport* report);

// Reports how a schedule ran on a real device; gpu.h adds the comparison with the prediction. The
// report has no segments, because a run releases what it leaves there.
proto::DeviceReport ReportDeviceRun(const RunPlan& plan, const proto::RecordedPeaks& recorded,
                                    const DeviceRun& run);

// Returns the report of the command oom; `oom` is from OomReport() (report/ask/oom.h).
proto::DeviceReport ReportOom(const Schedule& schedule, const ReplaySettings& settings,
                              const DeviceContents& contents, proto::OutOfMemory oom);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_DEVICE_REPORT_H_
