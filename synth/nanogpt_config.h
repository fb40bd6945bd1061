// nanoGPT's configuration under nanoGPT's names.
#ifndef MEMREPLAY_SYNTH_NANOGPT_CONFIG_H_
#define MEMREPLAY_SYNTH_NANOGPT_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "synth/config_keys.h"
#include "synth/trainer_config.h"

namespace memreplay::synth {

// Defaults are those of nanoGPT's train.py and model.py.
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
  // As nanoGPT's, wpe not counted out.
  int64_t parameter_count() const;
};

// Keys that are known, in the order in which command lines apply them. Those of
// nanoGPT that do not concern memory are known too and do nothing.
std::vector<KeyInfo> NanoGptKeys();

// What to do instead, for keys that do not exist but are believed in
// (eval_batch_size); else empty.
std::string_view NanoGptHint(std::string_view key);

// Errors: InvalidArgument: an unknown key (with a hint), a value of another type
// than the key's, as nanoGPT's configurator would say.
absl::Status ApplySetting(const Setting& setting, NanoGptConfig* config);

// What nanoGPT or PyTorch would refuse, and what is too large to write down.
absl::Status Validate(const NanoGptConfig& config);

// All of it as one JSON object, nanoGPT's names as keys.
std::string ToJson(const NanoGptConfig& config);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_SYNTH_NANOGPT_CONFIG_H_
