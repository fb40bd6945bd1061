// nanoGPT's configuration under nanoGPT's names, and what else a prediction has
// to know.
#ifndef MEMREPLAY_TRACE_SYNTH_NANOGPT_CONFIG_H_
#define MEMREPLAY_TRACE_SYNTH_NANOGPT_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/synth/session.h"

namespace memreplay::synth {

// Defaults are those of nanoGPT's train.py and model.py.
struct NanoGptConfig {
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  int64_t block_size = 1024;
  int64_t vocab_size = 50304;
  int64_t batch_size = 12;
  int64_t gradient_accumulation_steps = 40;
  double dropout = 0;
  bool bias = false;
  std::string dtype = "bfloat16";
  bool compile = true;
  double grad_clip = 1;
  int64_t eval_interval = 2000;
  int64_t eval_iters = 200;
  int64_t max_iters = 600000;
  bool eval_only = false;
  std::string dataset = "openwebtext";  // shakespeare_char: 65 characters instead of 50304 tokens
  std::string init_from = "scratch";    // gpt2, gpt2-medium, gpt2-large, gpt2-xl: their sizes

  // Not nanoGPT's.
  std::string attention = "auto";         // flash, efficient, manual
  std::string optimizer = "adamw_fused";  // adamw_foreach, adamw_single, sgd
  std::string checkpoint = "none";        // block
  bool return_logits = true;              // compiled: the graph returns the logits
  bool tie_weights = true;
  std::string torch_version = "2.6";
  std::string workspace_policy = "persistent";  // per_call
  int64_t cublas_workspace = 0;                 // bytes; 0: the release's
  std::string compute_capability = "8.9";

  // How much of the run is written down. Memory repeats itself after two
  // iterations and two evaluation passes.
  int64_t iterations = 2;   // training iterations, at most max_iters
  int64_t eval_passes = 3;  // forward passes of one evaluation, at most 2 * eval_iters; 0: all
  bool eval_first = true;   // evaluate before iteration 0, as nanoGPT does
  bool eval_last = true;    // end with the evaluation that comes some time later

  std::string resolved_attention() const;  // never "auto"
  Platform platform() const;
  // As nanoGPT's, wpe not counted out.
  int64_t parameter_count() const;
};

// One setting, as on nanoGPT's command line (without "--") or in its config file.
struct Setting {
  std::string key;
  std::string value;  // a Python literal
};

// A key for --help.
struct KeyInfo {
  std::string_view name;
  std::string values;         // "N", "True|False", "auto|flash" ...
  std::string default_value;  // empty: the key has nothing to do with memory
};

// Keys that are known, in the order in which command lines apply them. Those of
// nanoGPT that do not concern memory are known too and do nothing.
std::vector<KeyInfo> NanoGptKeys();

// What to do instead, for keys that do not exist but are believed in
// (eval_batch_size); else empty.
std::string_view HintForKey(std::string_view key);

// Errors: InvalidArgument: an unknown key (with a hint), a value of another type
// than the key's, as nanoGPT's configurator would say.
absl::Status ApplySetting(const Setting& setting, NanoGptConfig* config);

// The lines of a nanoGPT config file: `key = value`, comments, blank lines.
// `name` is for messages: "FILE: line L: expected X, found Y".
absl::StatusOr<std::vector<Setting>> ReadConfigFile(std::string_view text, std::string_view name);

// What nanoGPT or PyTorch would refuse, and what is too large to write down.
absl::Status Validate(const NanoGptConfig& config);

// All of it as one JSON object, nanoGPT's names as keys.
std::string ToJson(const NanoGptConfig& config);

}  // namespace memreplay::synth

#endif  // MEMREPLAY_TRACE_SYNTH_NANOGPT_CONFIG_H_
