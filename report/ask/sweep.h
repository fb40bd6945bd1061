// Which settings would suit a file best.
#ifndef MEMREPLAY_REPORT_ASK_SWEEP_H_
#define MEMREPLAY_REPORT_ASK_SWEEP_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/ask/driver_costs.h"
#include "sim/observe/peak_cause.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/control.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// What a sweep found.
struct SweepAnswer {
  std::vector<SweepRow> rows;  // best first
  SweepRow current;            // the current settings, whether or not among the rows
  bool searched = false;
  size_t shown = 10;
  std::string costs_of;  // what SweepRow::call_nanoseconds was measured on; "": not known
  PeakLive live;
  Packing packing;
  // Why the current settings reserve what they do, and the worst of the rows.
  std::optional<PeakCause> current_cause;
  std::optional<PeakCause> worst_cause;
};

// Fills `report`, which describes the replay of the current settings, and makes
// its mode "sweep".
void AddSweep(const SweepAnswer& answer, const Schedule& schedule, const TorchProfile& profile,
              proto::DeviceReport* report);

// The `lower_bounds` of a sweep or a fit.
void FillBounds(const PeakLive& live, const Packing& packing, proto::LowerBounds* to);

// What to know before using settings: one sentence each, the worst first.
std::vector<std::string> RisksOf(const AllocatorConfig& config, std::optional<double> fraction);

// What a sweep tries, and from which start.
struct SweepQuestion {
  std::vector<std::string> confs;  // none: search what the release allows
  StartPolicy start = StartPolicy::kRecorded;
  const DriverCosts* costs = nullptr;  // of calls; may be null
  std::optional<size_t> shown;         // rows that the text has
  size_t threads = 1;
  ProgressSink* progress = nullptr;  // told of replays, of `confs` of how many; may be null
};

// The rows, the bounds and what else goes with them. No errors: a row says why it was refused.
void AddSweepTo(proto::DeviceReport* report, const Study& study, const SweepQuestion& question);

// No rows of a recording without events. Errors: ReplayWhatIf()'s. A replay for each setting, and
// two for its error bar of the best few.
absl::StatusOr<proto::DeviceReport> AskSweep(const Study& study, const SweepQuestion& question);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_SWEEP_H_
