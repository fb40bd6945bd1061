// Finds the smallest device memory on which a file survives, and what of a training run fits one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "hardware/outside_figures.h"
#include "proto/report.pb.h"
#include "sim/observe/phase_usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"
#include "synth/models.h"
#include "trace/value/units.h"

namespace memreplay {

// Settings, and the devices on which the file survives under them.
struct FitRow {
  Candidate candidate;
  bool is_current = false;
  std::string refused;
  SmallestCapacity found;
  SmallestCapacity other_order;  // with addresses in the other order
};

void AddFits(const std::vector<FitRow>& rows, const PeakLive& live, const Packing& packing,
             proto::DeviceReport* report);

// Answers for each of `confs`, or if there are none, for the file's own settings, the defaults and
// expandable segments. Error: ReplayWhatIf()'s; settings that the release rejects are a row that
// says so.
absl::StatusOr<proto::DeviceReport> AskFit(const Study& study,
                                           const std::vector<std::string>& confs, size_t threads,
                                           ProgressSink* progress = nullptr);

// --- The largest batch (or sequence, or number of layers) that fits a GPU. ---

// The value of a training run to search, and the device to search it for.
struct LargestFitQuestion {
  std::string model;
  std::string key;  // whose largest value is searched: "batch_size"
  // Makes the run with that value. Called from any thread.
  std::function<absl::StatusOr<synth::TrainingRun>(int64_t value)> make_run;
  std::vector<std::string> confs;  // if empty: the defaults and expandable segments
  SettingsRequest settings;        // if it has no capacity: that of the schedule
  AssumedOutside cuda_context;
};

// Searches the largest value. Errors: those of make_run(1); an unknown release; no capacity.
absl::StatusOr<proto::Report> AskLargestFit(const LargestFitQuestion& question);

// Returns what a training run would need, phase by phase. `model` is "nanogpt"; `parameters` are
// numbers, not bytes.
proto::Report PredictionReport(std::string_view model, int64_t parameters,
                               const AssumedOutside& cuda_context, const ReplaySettings& settings,
                               const PhaseUsage& usage);

}  // namespace memreplay
