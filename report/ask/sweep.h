// Which settings would suit a file best.
#ifndef MEMREPLAY_REPORT_ASK_SWEEP_H_
#define MEMREPLAY_REPORT_ASK_SWEEP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/answer/driver_costs.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/whatif/control.h"
#include "sim/whatif/what_if.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

struct SweepQuestion {
  std::vector<std::string> confs;  // none: search what the release allows
  StartPolicy start = StartPolicy::kRecorded;
  const DriverCosts* costs = nullptr;  // of calls; may be null
  std::optional<size_t> shown;         // rows that the text has
  size_t threads = 1;
  ProgressSink* progress = nullptr;  // told of replays, of `confs` of how many; may be null
};

// The rows, the bounds and what else goes with them, of a file of which `basis` is known.
// Settings `on_card` are those of OnRecordedCard(). No errors: a row says why it was refused.
void AddSweepTo(proto::DeviceReport* report, const Schedule& schedule,
                const ReplaySettings& on_card, const WhatIfBasis& basis,
                const SweepQuestion& question);

// Errors: ReplayWhatIf()'s. A replay for each setting, and two for its error bar of the best few.
absl::StatusOr<proto::DeviceReport> AskSweep(const Schedule& schedule,
                                             const ReplaySettings& settings,
                                             const SweepQuestion& question);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_SWEEP_H_
