// The schedule of a Llama-like model that nanoGPT's train.py trains.
#pragma once

#include "absl/status/statusor.h"
#include "synth/llama_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// Returns the TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> LlamaProgram(const LlamaConfig& config);

}  // namespace memreplay::synth
