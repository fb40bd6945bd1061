// The configuration of a Llama-like model and of nanoGPT's trainer, under the names of the
// reference code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "synth/config_keys.h"
#include "synth/trainer_config.h"

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

std::vector<KeyInfo> LlamaKeys();
// Returns the advice for a name of a key in other software; empty if there is none.
std::string_view LlamaHint(std::string_view key);
// Applies a setting. Error: InvalidArgument for an unknown key (with advice) or a value of another
// type.
absl::Status ApplySetting(const Setting& setting, LlamaConfig* config);
absl::Status Validate(const LlamaConfig& config);
std::string ToJson(const LlamaConfig& config);

}  // namespace memreplay::synth
