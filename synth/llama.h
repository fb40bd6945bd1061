// The schedule of a Llama-like model that nanoGPT's train.py trains.
#ifndef MEMREPLAY_SYNTH_LLAMA_H_
#define MEMREPLAY_SYNTH_LLAMA_H_

#include "absl/status/statusor.h"
#include "synth/llama_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// Returns the TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> LlamaProgram(const LlamaConfig& config);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_LLAMA_H_
