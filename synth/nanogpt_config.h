// nanoGPT's configuration under nanoGPT's names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "synth/config_keys.h"
#include "synth/trainer_config.h"

namespace memreplay::synth {

// The defaults are those of nanoGPT's train.py and model.py.
struct NanoGptConfig : TrainerConfig {
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  int64_t block_size = 1024;
  int64_t vocab_size = 50304;
  double dropout = 0;
  bool bias = false;
  std::string dataset = "openwebtext";  // shakespeare_char: 65 characters instead of 50304 tokens
  std::string init_from = "scratch";    // gpt2, gpt2-medium, gpt2-large, gpt2-xl: their sizes
  bool return_logits = true;            // compiled: the graph returns the logits

  std::string resolved_attention() const { return AttentionFor(n_embd / n_head); }
  // Returns the number of parameters as nanoGPT counts them, including wpe.
  int64_t parameter_count() const;
};

// Returns all known keys in the order in which command lines apply them. This includes keys of
// nanoGPT that do not affect memory, which do nothing.
std::vector<KeyInfo> NanoGptKeys();

// Returns the advice for a key that does not exist but that users expect (eval_batch_size); empty
// if there is none.
std::string_view NanoGptHint(std::string_view key);

// Applies a setting. Error: InvalidArgument for an unknown key (with advice) or a value of another
// type than the key's, as in nanoGPT's configurator.
absl::Status ApplySetting(const Setting& setting, NanoGptConfig* config);

// Returns an error for what nanoGPT or PyTorch would reject, and for what is too large to write.
absl::Status Validate(const NanoGptConfig& config);

// Returns the whole configuration as one JSON object with nanoGPT's names as keys.
std::string ToJson(const NanoGptConfig& config);

}  // namespace memreplay::synth
