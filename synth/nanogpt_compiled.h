// nanoGPT's model under torch.compile: the buffers of the generated kernels, taken from the forward
// and backward graphs rather than simulated op by op. This is approximate, since the compiler
// decides which buffers it fuses away or reuses.
#pragma once

#include <vector>

#include "synth/nanogpt.h"
#include "synth/session.h"

namespace memreplay::synth {

// nanoGPT as torch.compile() runs it.
class CompiledNanoGpt final : public NanoGpt {
 public:
  using NanoGpt::NanoGpt;

  // Runs the forward graph once. If gradients are enabled, what its backward needs is kept until
  // Backward().
  Output Forward(const Tensor& indices, const Tensor& targets) override;
  // Runs the backward graph; on return its gradients are added to those of the model's parameters.
  void Backward(const Tensor& loss) override;

 private:
  struct Layer {
    Tensors norm_1, norm_2;  // normalised input, mean, rstd
    Tensor norm_1_out, norm_2_out, qkv, attention, logsumexp, fc, gelu;
    Tensor c_attn, c_proj, c_fc, mlp_c_proj;  // 16-bit weights
  };
  struct Saved {
    Tensor indices, targets, tok_emb, norm_f_out, lm_head, logits, row_max, row_sum;
    std::vector<Layer> layers;
  };

  Tensor Activation(std::string_view op, int64_t channels);  // 16-bit [B, T, channels]
  Tensor Residual(std::string_view op);                      // fp32 [B, T, C]
  Tensors Norm(Tensor* out);
  Tensor WeightCast(std::string_view name, int64_t out, int64_t in);
  // Creates the gradients of a product's weight (as fp32, kept) and input.
  Tensor LinearBackward(std::string_view name, Tensor grad, Tensor weight, Tensor input);
  Tensor NormBackward(std::string_view name, Tensor residual_grad, Tensor grad, Tensors norm);
  Tensor LayerBackward(Layer layer, Tensor residual_grad);

  Saved saved_;
  Tensors grads_;  // created by the backward graph so far
};

}  // namespace memreplay::synth
