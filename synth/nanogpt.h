// nanoGPT's training run as a schedule: model.py and train.py, op by op.
#pragma once

#include "absl/status/statusor.h"
#include "synth/nanogpt_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// Returns the TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> NanoGptProgram(const NanoGptConfig& config);

}  // namespace memreplay::synth
