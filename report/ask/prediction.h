// Makes a Report of what a training run would need, phase by phase.
#pragma once

#include <string>

#include "hardware/outside_figures.h"
#include "proto/report.pb.h"
#include "sim/observe/phase_usage.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/units.h"

namespace memreplay {

// The assumptions about the run.
struct PredictionContext {
  std::string model;       // "nanogpt"
  int64_t parameters = 0;  // numbers, not bytes
  AssumedOutside cuda_context;
};

proto::Report PredictionReport(const PredictionContext& context, const ReplaySettings& settings,
                               const PhaseUsage& usage);

}  // namespace memreplay
