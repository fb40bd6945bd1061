// Finds the largest batch (or sequence, or number of layers) that fits a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hardware/outside_figures.h"
#include "proto/report.pb.h"
#include "sim/observe/phase_usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/whatif/largest_fit.h"
#include "synth/models.h"
#include "trace/value/units.h"

namespace memreplay {

// One value tried under one setting.
struct FitTrial {
  int64_t value = 0;
  Bytes peak_allocated;
  Bytes peak_reserved;
  std::string peak_phase;
  std::optional<PhaseOom> oom;
  bool is_hopeless = false;  // more is live at once than the device has
};

// Everything that was tried under one setting.
struct FitTrials {
  std::string conf;
  std::string refused;  // why the release rejects the settings; else empty
  LargestFit found;
  std::vector<FitTrial> trials;  // ascending
};

// The circumstances under which values were tried.
struct LargestFitContext {
  std::string model;
  std::string key;    // "batch_size"
  std::string torch;  // release
  Bytes capacity;     // what the allocator can get
  AssumedOutside cuda_context;
};

proto::Report LargestFitReport(const LargestFitContext& context,
                               const std::vector<FitTrials>& settings);

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

}  // namespace memreplay
