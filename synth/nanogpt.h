// nanoGPT's training run as a schedule: model.py and train.py, op by op, and its configuration
// under nanoGPT's names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "synth/config_keys.h"
#include "synth/trainer_config.h"
#include "synth/training.h"
#include "trace/value/trace.h"

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

template <>
const ConfigKeys<NanoGptConfig>& KeysOf();

// nanoGPT, op by op.
class NanoGpt : public Model {
 public:
  // Implements model.to("cuda").
  NanoGpt(Session& s, const NanoGptConfig& config);

  Output Forward(const Tensor& indices, const Tensor& targets) override;

 protected:
  // Assigns gradients, created in any order, to the parameters of the same size. A parameter
  // without a gradient gets a new one (biases, which a compiled backward sums in passing).
  void AccumulateGrads(Tensors grads);

  const NanoGptConfig config_;
  const std::string attention_;

 private:
  struct Weights {
    Tensor weight;
    Tensor bias;  // empty without bias
  };
  struct Block {
    Weights ln_1, c_attn, c_proj, ln_2, c_fc, mlp_c_proj;
    Tensor mask;  // manual attention: the result of tril()
  };

  Weights NewWeights(const std::string& name, Sizes sizes);
  Tensor Attention(const Block& block, const Tensor& x);
  Tensor ManualAttention(const Block& block, const Tensor& q, const Tensor& k, const Tensor& v,
                         Tensor& att);
  Tensor Mlp(const Block& block, const Tensor& x);
  Tensor RunBlock(const Block& block, const Tensor& x);

  Tensor wte_, wpe_, lm_head_;
  std::vector<Block> blocks_;
  Weights ln_f_;
};

// Makes nanoGPT as torch.compile() runs it (nanogpt_compiled.cc).
std::unique_ptr<Model> CompiledModel(Session& s, const NanoGptConfig& config);

// Returns an error for what nanoGPT or PyTorch would reject, and for what is too large to write.
absl::Status Validate(const NanoGptConfig& config);
// Returns the TrainingProgram() of training.h. Error: that of Validate().
absl::StatusOr<Trace> Program(const NanoGptConfig& config);

}  // namespace memreplay::synth
