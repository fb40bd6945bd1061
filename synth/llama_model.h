// A Llama-like model: RMSNorm, rotary embedding, grouped-query attention, SwiGLU. It follows the
// PyTorch model in tests/synth/walks/models.py.
#pragma once

#include <string>
#include <vector>

#include "synth/llama_config.h"
#include "synth/optimizer.h"
#include "synth/session.h"
#include "synth/tensor.h"
#include "synth/training.h"

namespace memreplay::synth {

// The Llama-like model, op by op.
class Llama final : public Model {
 public:
  Llama(Session& s, const LlamaConfig& config);

  Output Forward(const Tensor& indices, const Tensor& targets) override;
  const Parameters& parameters() const override { return parameters_; }

 private:
  struct Block {
    Tensor wq, wk, wv, wo, w1, w2, w3, attention_norm, ffn_norm;
  };

  Tensor NewParameter(const std::string& name, Sizes sizes);
  Tensor Project(std::string_view name, Tensor x, const Tensor& weight);
  Tensor RepeatHeads(Tensor x);
  Tensor Attention(const Block& block, const Tensor& x);
  Tensor FeedForward(const Block& block, const Tensor& x);
  Tensor RunBlock(const Block& block, const Tensor& x);

  Session& s_;
  const LlamaConfig config_;
  Parameters parameters_;
  Tensor tok_embeddings_, norm_, output_, angles_;
  std::vector<Block> layers_;
};

}  // namespace memreplay::synth
