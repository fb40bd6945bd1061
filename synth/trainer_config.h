// What nanoGPT's training loop and a prediction have to know about a run of any model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "synth/config_keys.h"
#include "synth/session.h"
#include "synth/tensor.h"

namespace memreplay::synth {

// The defaults are those of nanoGPT's train.py.
struct TrainerConfig {
  int64_t batch_size = 12;
  int64_t gradient_accumulation_steps = 40;
  std::string dtype = "bfloat16";
  bool compile = true;
  double grad_clip = 1;
  int64_t eval_interval = 2000;
  int64_t eval_iters = 200;
  int64_t max_iters = 600000;
  bool eval_only = false;

  // These are not in nanoGPT.
  std::string attention = "auto";         // flash, efficient, manual
  std::string optimizer = "adamw_fused";  // adamw_foreach, adamw_single, sgd
  std::string checkpoint = "none";        // block
  bool tie_weights = true;
  std::string torch_version = "2.6";
  std::string workspace_policy = "auto";  // persistent, per_call; auto: as in the release
  int64_t cublas_workspace = 0;           // bytes; 0: the release's
  std::string compute_capability = "8.9";
  int64_t multiprocessors = 0;  // 0: those of the largest common GPU of this capability

  // The part of the run that is written. Memory repeats itself after two iterations and two
  // evaluation passes.
  int64_t iterations = 2;   // training iterations, at most max_iters
  int64_t eval_passes = 3;  // forward passes of one evaluation, at most 2 * eval_iters; 0: all
  bool eval_first = true;   // evaluate before iteration 0, as nanoGPT does
  bool eval_last = true;    // end with the next evaluation

  // Compares torch_version, "2.6" or "2.6.0"; an invalid one is older than any.
  bool TorchAtLeast(int major, int minor) const;
  // Never returns "auto".
  std::string AttentionFor(int64_t channels_per_head) const;
  std::optional<DType> autocast() const;
  Platform platform() const;
};

// The sizes of a model, to reject what is too large to write.
struct ModelSizes {
  int64_t layers, heads, channels, widest_layer, length, vocabulary;
};

// The value of a key and its valid values.
struct ConfigRange {
  std::string_view key;
  int64_t value, low, high;
};
absl::Status CheckRanges(const std::vector<ConfigRange>& ranges);

// Returns an error for what PyTorch would reject, and for what is too large to write.
absl::Status ValidateTrainer(const TrainerConfig& config, const ModelSizes& sizes);

// Returns a model's keys, those of its trainer, and known keys without effect on memory.
template <typename Config>
std::vector<ConfigKey<Config>> WithTrainerKeys(
    std::vector<ConfigKey<Config>> keys,
    std::initializer_list<std::string_view> without_effect = {}) {
  const ConfigKey<Config> shared[] = {
      {"batch_size", &Config::batch_size},
      {"gradient_accumulation_steps", &Config::gradient_accumulation_steps},
      {"dtype", &Config::dtype, "float32|bfloat16|float16"},
      {"compile", &Config::compile},
      {"grad_clip", &Config::grad_clip},
      {"eval_interval", &Config::eval_interval},
      {"eval_iters", &Config::eval_iters},
      {"max_iters", &Config::max_iters},
      {"eval_only", &Config::eval_only},
      {"attention", &Config::attention, "auto|flash|efficient|manual"},
      {"optimizer", &Config::optimizer, "adamw_fused|adamw_foreach|adamw_single|sgd"},
      {"checkpoint", &Config::checkpoint, "none|block"},
      {"tie_weights", &Config::tie_weights},
      {"torch_version", &Config::torch_version},
      {"workspace_policy", &Config::workspace_policy, "auto|persistent|per_call"},
      {"cublas_workspace", &Config::cublas_workspace},
      {"compute_capability", &Config::compute_capability},
      {"multiprocessors", &Config::multiprocessors},
      {"iterations", &Config::iterations},
      {"eval_passes", &Config::eval_passes},
      {"eval_first", &Config::eval_first},
      {"eval_last", &Config::eval_last},
  };
  keys.insert(keys.end(), std::begin(shared), std::end(shared));
  for (const std::string_view name : without_effect) keys.push_back({name, {}});
  return keys;
}

}  // namespace memreplay::synth
