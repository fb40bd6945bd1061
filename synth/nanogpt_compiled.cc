// nanoGPT's model under torch.compile: the buffers of the generated kernels, taken from the forward
// and backward graphs rather than simulated op by op. This is approximate, since the compiler
// decides which buffers it fuses away or reuses.
#include <memory>
#include <utility>
#include <vector>

#include "synth/nanogpt.h"
#include "synth/session.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

DType Compute(const NanoGptConfig& config) {
  if (config.dtype == "float16") return DType::kFloat16;
  return config.dtype == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
}

// nanoGPT as torch.compile() runs it.
class CompiledNanoGpt final : public NanoGpt {
 public:
  using NanoGpt::NanoGpt;

  // Runs the forward graph once. If gradients are enabled, what its backward needs is kept until
  // Backward().
  Model::Output Forward(const Tensor& indices, const Tensor& targets) override {
    const int64_t c = config_.n_embd;
    const bool keeps = s_.grad_enabled();
    Saved saved;
    saved.indices = indices;
    saved.targets = targets;
    saved.tok_emb = Residual("tok_emb");  // 4 BTC
    Tensor residual = saved.tok_emb;
    Tensor branch;  // last product, added in the next kernel
    for (int64_t i = 0; i < config_.n_layer; ++i) {
      const Scope scope(s_, StrCat("h.", i));
      Layer layer;
      if (branch.defined()) {
        Tensor sum = Residual("add");
        residual = std::move(sum);
      }
      layer.norm_1 = Norm(&layer.norm_1_out);
      branch = Tensor();
      layer.c_attn = WeightCast("attn.c_attn", 3 * c, c);
      layer.qkv = Activation("attn.c_attn mm", 3 * c);
      s_.UseGemm();
      if (!keeps) layer.norm_1_out = layer.c_attn = Tensor();
      layer.attention = Activation("attn.attention", c);
      if (attention_ == "flash" || keeps) {
        layer.logsumexp =
            s_.New("attn.attention logsumexp",
                   {config_.batch_size, config_.n_head, config_.block_size}, DType::kFloat32);
      }
      if (!keeps) layer.qkv = layer.logsumexp = Tensor();
      layer.c_proj = WeightCast("attn.c_proj", c, c);
      branch = Activation("attn.c_proj mm", c);
      if (!keeps) layer.attention = layer.c_proj = Tensor();
      Tensor sum = Residual("add");
      residual = std::move(sum);
      layer.norm_2 = Norm(&layer.norm_2_out);
      layer.c_fc = WeightCast("mlp.c_fc", 4 * c, c);
      layer.fc = Activation("mlp.c_fc mm", 4 * c);
      if (!keeps) layer.norm_2_out = layer.c_fc = Tensor();
      layer.gelu = Activation("mlp.gelu", 4 * c);
      if (!keeps) layer.fc = Tensor();
      layer.mlp_c_proj = WeightCast("mlp.c_proj", c, 4 * c);
      branch = Activation("mlp.c_proj mm", c);
      if (keeps) saved.layers.push_back(std::move(layer));
    }
    saved.norm_f_out = Activation("ln_f layer_norm", c);
    branch = residual = Tensor();
    if (!keeps) saved.tok_emb = Tensor();
    saved.lm_head = WeightCast("lm_head", config_.vocab_size, c);
    Output output;
    const int64_t rows = config_.batch_size * config_.block_size;
    saved.logits = s_.New("lm_head mm", {rows, config_.vocab_size}, Compute(config_), kLogits);
    // The cross entropy is computed from the logits in one pass, without copies.
    saved.row_max = s_.New("cross_entropy amax", {rows}, DType::kFloat32, kLogits);
    saved.row_sum = s_.New("cross_entropy log sum", {rows}, DType::kFloat32, kLogits);
    output.loss = s_.New("loss", {}, DType::kFloat32, kLogits);
    if (config_.return_logits) output.logits = saved.logits;
    if (keeps) saved_ = std::move(saved);
    return output;
  }

  // Runs the backward graph; on return its gradients are added to those of the model's parameters.
  void Backward(const Tensor& /*loss*/) override {
    const OnThread autograd_thread(s_, Thread::kAutograd);
    const GradMode no_graph(s_, false);
    Saved saved = std::exchange(saved_, {});
    const int64_t c = config_.n_embd;
    Tensor tangent;
    if (config_.return_logits) {
      // The logits are an output without a gradient, so zeros are created for it.
      tangent =
          s_.New("logits tangent (zeros)", saved.logits.sizes(), saved.logits.dtype(), kLogits);
    }
    Tensor grad = s_.New("logits grad", saved.logits.sizes(), saved.logits.dtype(), kLogits);
    tangent = saved.logits = saved.row_max = saved.row_sum = saved.targets = Tensor();
    grad = LinearBackward("lm_head", std::move(grad), std::move(saved.lm_head),
                          std::move(saved.norm_f_out));
    Tensor residual_grad = NormBackward("ln_f", Tensor(), std::move(grad), {});
    for (int64_t i = config_.n_layer; i-- > 0;) {
      const Scope scope(s_, StrCat("h.", i));
      residual_grad = LayerBackward(std::move(saved.layers.back()), std::move(residual_grad));
      saved.layers.pop_back();
    }
    grads_.push_back(s_.New("wpe grad", {config_.block_size, c}, DType::kFloat32, kTemporary));
    {
      const Tensor wte_grad =
          s_.New("wte grad", {config_.vocab_size, c}, DType::kFloat32, kTemporary);
      if (!config_.tie_weights) grads_.push_back(wte_grad);  // otherwise added to the head's
    }
    saved = {};
    residual_grad = Tensor();
    AccumulateGrads(std::exchange(grads_, {}));
  }

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

  // 16-bit [B, T, channels]
  Tensor Activation(std::string_view op, int64_t channels) {
    return s_.New(op, {config_.batch_size, config_.block_size, channels}, Compute(config_),
                  s_.grad_enabled() ? "activation" : kTemporary);
  }

  // fp32 [B, T, C]
  Tensor Residual(std::string_view op) {
    return s_.New(op, {config_.batch_size, config_.block_size, config_.n_embd}, DType::kFloat32,
                  s_.grad_enabled() ? "activation" : kTemporary);
  }

  // LayerNorm keeps the normalised input instead of the input.
  Tensors Norm(Tensor* out) {
    Tensors norm;
    if (s_.grad_enabled()) {
      const Sizes rows = {config_.batch_size, config_.block_size, 1};
      norm.push_back(Residual("layer_norm normalised"));  // 4 BTC
      norm.push_back(s_.New("layer_norm mean", rows, DType::kFloat32));
      norm.push_back(s_.New("layer_norm rstd", rows, DType::kFloat32));
    }
    *out = Activation("layer_norm", config_.n_embd);  // h BTC
    return norm;
  }

  Tensor WeightCast(std::string_view name, int64_t out, int64_t in) {
    if (Compute(config_) == DType::kFloat32) return Tensor();
    return s_.New(StrCat(name, " weight cast"), {out, in}, Compute(config_), "weight_cast");
  }

  // Creates the gradients of a product's weight (as fp32, kept) and input.
  Tensor LinearBackward(std::string_view name, Tensor grad, Tensor weight, Tensor input) {
    s_.UseGemm();
    const int64_t out = grad.size(-1);
    const int64_t in = input.size(-1);
    Tensor dw = s_.New(StrCat(name, " dweight"), {out, in}, Compute(config_), kTemporary);
    Tensor dx = s_.New(StrCat(name, " dx"), input.sizes(), Compute(config_), kTemporary);
    grad = weight = input = Tensor();
    if (dw.dtype() != DType::kFloat32) {
      dw = s_.New(StrCat(name, " dweight cast"), {out, in}, DType::kFloat32, kTemporary);
    }
    grads_.push_back(std::move(dw));
    return dx;
  }

  Tensor NormBackward(std::string_view name, Tensor residual_grad, Tensor grad, Tensors norm) {
    Tensor dx =
        s_.New(StrCat(name, " dx"), {config_.batch_size, config_.block_size, config_.n_embd},
               DType::kFloat32, kTemporary);
    grads_.push_back(
        s_.New(StrCat(name, " dweight"), {config_.n_embd}, DType::kFloat32, kTemporary));
    residual_grad = grad = Tensor();
    norm.clear();
    return dx;
  }

  Tensor LayerBackward(Layer layer, Tensor residual_grad) {
    const auto branch_grad = [&](std::string_view op) {  // has the branch's type
      return Compute(config_) == DType::kFloat32 ? residual_grad : Activation(op, config_.n_embd);
    };
    Tensor grad = LinearBackward("mlp.c_proj", branch_grad("mlp grad"), std::move(layer.mlp_c_proj),
                                 std::move(layer.gelu));
    layer.fc = Tensor();  // gelu's gradient overwrites the product's
    grad = LinearBackward("mlp.c_fc", std::move(grad), std::move(layer.c_fc),
                          std::move(layer.norm_2_out));
    residual_grad =
        NormBackward("ln_2", std::move(residual_grad), std::move(grad), std::move(layer.norm_2));
    grad = LinearBackward("attn.c_proj", branch_grad("attn grad"), std::move(layer.c_proj),
                          layer.attention);
    const int64_t c = config_.n_embd;
    {
      const Tensor dq = Activation("attn.dq", c);
      const Tensor dk = Activation("attn.dk", c);
      const Tensor dv = Activation("attn.dv", c);
      const int64_t heads = config_.batch_size * config_.n_head;
      if (attention_ == "flash") {
        const int64_t rows = heads * RoundUpTo(config_.block_size, 128);
        const auto softmax_d = s_.NewScratch("attn softmax_d", 4 * rows);
        const auto dq_sum =
            s_.NewScratch("attn dq_accum", 4 * rows * RoundUpTo(c / config_.n_head, 32));
      } else {
        s_.NewScratch("attn delta", 4 * heads * config_.block_size);
      }
      layer.qkv = layer.attention = layer.logsumexp = Tensor();
      grad = Activation("attn.split grad (cat)", 3 * c);
    }
    grad = LinearBackward("attn.c_attn", std::move(grad), std::move(layer.c_attn),
                          std::move(layer.norm_1_out));
    return NormBackward("ln_1", std::move(residual_grad), std::move(grad), std::move(layer.norm_1));
  }

  Saved saved_;
  Tensors grads_;  // created by the backward graph so far
};

}  // namespace

std::unique_ptr<Model> CompiledModel(Session& s, const NanoGptConfig& config) {
  return std::make_unique<CompiledNanoGpt>(s, config);
}

}  // namespace memreplay::synth
