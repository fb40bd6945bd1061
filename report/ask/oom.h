// Reports why memory ran out.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/ask/advise_recording.h"
#include "report/device/categories.h"
#include "sim/category/meanings.h"
#include "sim/oom/oom_analysis.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// What is known about the GPU, and how much of the answer to list.
struct OomReportOptions {
  // Memory of the GPU on which the recording was made; absent: estimated.
  std::optional<Bytes> card;
  HeldOptions held;                    // its `top` applies to segments too
  const Meanings* meanings = nullptr;  // of the schedule: categories of what was live
};

// Reports an analysis; if `analysis` is null, memory does not run out.
proto::OutOfMemory OomReport(const Schedule& schedule, const ReplaySettings& settings,
                             const OomAnalysis* analysis, const OomReportOptions& options);

// Returns the parts of the state that memory use consists of; capacity and what is outside PyTorch
// stay 0. O(blocks).
proto::MemoryUse MemoryUseOf(const MemoryState& state);

// Returns whether memory ran out, which decides the exit status.
inline bool RanOut(const proto::OutOfMemory& oom) { return oom.verdict() != proto::Verdict::none; }

// Reports a recording as it happened, or on a device chosen as in other commands, with the control
// of what is tried. Errors: AnalyseOom()'s, ReplayWhatIf()'s.
absl::StatusOr<proto::DeviceReport> AskOom(const Study& study, const OomReportOptions& options,
                                           ProgressSink* progress = nullptr);

// Fills `report->advice` if the recording in `report->oom` ran out: the changes of the script that
// would have served the request, on the device that the recording shows or the study was given.
// Makes at most kMaxReplays replays (sim/remedy/search.h), and those that `question` is shown.
// Error: AdviceOf()'s.
absl::Status AddServingAdvice(const Study& study, const ServingQuestion& question,
                              ProgressSink* progress, proto::DeviceReport* report);

// Returns the answer alone; `settings` have the device. Error: AnalyseOom()'s.
absl::StatusOr<proto::OutOfMemory> WhyOutOfMemory(const Schedule& schedule,
                                                  const ReplaySettings& settings,
                                                  const OomReportOptions& options,
                                                  ProgressSink* progress = nullptr);

}  // namespace memreplay
