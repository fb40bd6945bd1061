// nanoGPT's model.py.
#pragma once

#include <vector>

#include "synth/nanogpt_config.h"
#include "synth/optimizer.h"
#include "synth/session.h"
#include "synth/tensor.h"
#include "synth/training.h"

namespace memreplay::synth {

// nanoGPT, op by op.
class NanoGpt final : public Model {
 public:
  // Implements model.to("cuda").
  NanoGpt(Session& s, const NanoGptConfig& config);

  Output Forward(const Tensor& indices, const Tensor& targets) override;
  const Parameters& parameters() const override { return parameters_; }
  // Assigns gradients, created in any order, to the parameters of the same size. A parameter
  // without a gradient gets a new one (biases, which a compiled backward sums in passing).
  void AccumulateGrads(Session& s, Tensors grads);

 private:
  struct Weights {
    Tensor weight;
    Tensor bias;  // empty without bias
  };
  struct Block {
    Weights ln_1, c_attn, c_proj, ln_2, c_fc, mlp_c_proj;
    Tensor mask;  // manual attention: the result of tril()
  };

  Tensor NewParameter(const std::string& name, Sizes sizes);
  Weights NewWeights(const std::string& name, Sizes sizes);
  Tensor Attention(const Block& block, const Tensor& x);
  Tensor ManualAttention(const Block& block, const Tensor& q, const Tensor& k, const Tensor& v,
                         Tensor& att);
  Tensor Mlp(const Block& block, const Tensor& x);
  Tensor RunBlock(const Block& block, const Tensor& x);

  Session& s_;
  const NanoGptConfig config_;
  const std::string attention_;
  Parameters parameters_;
  Tensor wte_, wpe_, lm_head_;
  std::vector<Block> blocks_;
  Weights ln_f_;
};

}  // namespace memreplay::synth
