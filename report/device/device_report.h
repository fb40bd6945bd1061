// Makes a Report of a run or a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "proto/record.pb.h"
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

// --- Parts of it. ---

proto::TorchProfileChoice DescribeChoice(const ProfileChoice& choice);

// Describes the choice for a question without a file: `is_given` says whether the release was
// requested.
proto::TorchProfileChoice DescribeChoice(const TorchProfile& profile, bool is_given);

// Sets what the recorded process noted of who holds memory, if it did. O(notes).
void AddHolding(const Trace& trace, size_t device_index, proto::DeviceReport* report);

// Sets `unseen` if something was left out: what would have followed an out of memory or whatever
// else ended the script, or what came before the recording; and whether a device was asked about.
// Does nothing for a written schedule. `inventory` is from DescribeContents(). O(events).
void AddUnseen(const Study& study, const proto::Inventory& inventory, proto::DeviceReport* report);

// Fills in what follows from the sizes of a row, the goal and the run without a change: what the
// row saves, whether it fits, and what is to spare.
void CompareRow(const proto::Advice& advice, proto::Advice::Row* row);

// Sorts the rows: those that fit first, cheapest first, then the others by what they save, then in
// the same order those that cannot be written, and at the end those that could not be tried.
void RankRows(proto::Advice* advice);

// Sets nvidia_smi of each card on which `process` has memory: what was recorded, and for what only
// NVIDIA's libraries know the figures of public reports (hardware/outside_figures.h). Leaves it out
// on a real GPU and where the GPU's memory is the host's.
void AddProcessMemory(proto::RecordedProcess* process);

// Returns the answer from the figures of this report alone, so that they all describe the same run.
// If a replay does not agree with its recording, the diagnosis says that first. `device` must have
// everything else, including Categories; empty for a run on a real GPU.
proto::Diagnosis DiagnosisOf(const proto::DeviceReport& device);

// Puts the diagnosis of each device into the report, after everything else is in it. Text, page,
// JSON and Python all show it from there.
void AddDiagnoses(proto::Report* report);

}  // namespace memreplay
