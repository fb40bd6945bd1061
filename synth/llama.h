// A Llama-like model that nanoGPT's train.py trains: RMSNorm, rotary embedding, grouped-query
// attention, SwiGLU. Its configuration has the names of the reference code. It follows the PyTorch
// model in tests/synth/walks/models.py.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "synth/config_keys.h"
#include "synth/trainer_config.h"
#include "trace/value/trace.h"

namespace memreplay::synth {

// The configuration of a Llama-like model and of its trainer.
struct LlamaConfig : TrainerConfig {
  LlamaConfig() {
    compile = false;
    tie_weights = false;
    batch_size = 1;
    gradient_accumulation_steps = 8;
  }

  std::string preset = "none";  // sizes of a released model
  int64_t dim = 4096;
  int64_t n_layers = 32;
  int64_t n_heads = 32;
  int64_t n_kv_heads = 0;         // 0: n_heads, one for each
  int64_t ffn_dim = 0;            // 0: two thirds of 4 dim ...
  double ffn_dim_multiplier = 1;  // ... times this ...
  int64_t multiple_of = 256;      // ... rounded up to a multiple of this
  int64_t vocab_size = 32000;
  int64_t seq_len = 2048;
  std::string rms_norm = "auto";  // eager: op by op; fused: one kernel; auto: as in the release
  bool upcast_logits = false;     // model.output(h).float()

  int64_t kv_heads() const { return n_kv_heads == 0 ? n_heads : n_kv_heads; }
  int64_t head_dim() const { return dim / n_heads; }
  int64_t hidden_dim() const;  // of the feed-forward part
  bool fused_norm() const;
  int64_t parameter_count() const;
};

template <>
const ConfigKeys<LlamaConfig>& KeysOf();

// Returns an error for what is not modelled, for what PyTorch would reject, and for what is too
// large to write.
absl::Status Validate(const LlamaConfig& config);
// Returns the TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> Program(const LlamaConfig& config);

}  // namespace memreplay::synth
