// Finds the settings that would suit a file best.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/ask/parse_json.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
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
  std::string costs_of;  // what SweepRow::call_nanoseconds was measured on; "": unknown
  PeakLive live;
  Packing packing;
  // Why the current settings reserve what they do, and why the worst row does.
  std::optional<PeakCause> current_cause;
  std::optional<PeakCause> worst_cause;
};

// Fills `report`, which describes the replay of the current settings, and sets its mode to "sweep".
void AddSweep(const SweepAnswer& answer, const Schedule& schedule, const TorchProfile& profile,
              proto::DeviceReport* report);

// Fills the `lower_bounds` of a sweep or a fit.
void FillBounds(const PeakLive& live, const Packing& packing, proto::LowerBounds* to);

// Returns what to know before using settings, one sentence each, the worst first.
std::vector<std::string> RisksOf(const AllocatorConfig& config, std::optional<double> fraction);

// What a sweep tries, and from which start.
struct SweepQuestion {
  std::vector<std::string> confs;  // if empty: search what the release allows
  StartPolicy start = StartPolicy::kRecorded;
  const DriverCosts* costs = nullptr;  // of calls; may be null
  std::optional<size_t> shown;         // rows that the text shows
  size_t threads = 1;
  ProgressSink* progress = nullptr;  // counts replays, for `confs` with a total; may be null
};

// Returns a sentence about how many settings a search tries, or "" if a long schedule does not
// limit it.
std::string SearchLimitNote(const Schedule& schedule);

// Adds the rows, the bounds and what else belongs to them. No errors: a row says why it was
// rejected.
void AddSweepTo(proto::DeviceReport* report, const Study& study, const SweepQuestion& question);

// Sweeps a file; a recording without events has no rows. Makes one replay for each setting, and two
// for the error bar of each of the best few. Errors: ReplayWhatIf()'s.
absl::StatusOr<proto::DeviceReport> AskSweep(const Study& study, const SweepQuestion& question);

}  // namespace memreplay
