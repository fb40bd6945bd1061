// A Llama-like model trained by nanoGPT's train.py, as a program.
#ifndef MEMREPLAY_TRACE_SYNTH_LLAMA_H_
#define MEMREPLAY_TRACE_SYNTH_LLAMA_H_

#include "absl/status/statusor.h"
#include "trace/synth/llama_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> LlamaProgram(const LlamaConfig& config);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_TRACE_SYNTH_LLAMA_H_
