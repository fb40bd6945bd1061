#include "synth/llama_model.h"

#include <utility>

#include "synth/ops.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

Llama::Llama(Session& s, const LlamaConfig& config) : s_(s), config_(config) {
  const int64_t c = config.dim;
  const int64_t kv = config.kv_heads() * config.head_dim();
  const int64_t f = config.hidden_dim();
  tok_embeddings_ = NewParameter("tok_embeddings.weight", {config.vocab_size, c});
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const std::string layer = StrCat("layers.", i, ".");
    Block block;
    block.wq = NewParameter(layer + "attention.wq.weight", {c, c});
    block.wk = NewParameter(layer + "attention.wk.weight", {kv, c});
    block.wv = NewParameter(layer + "attention.wv.weight", {kv, c});
    block.wo = NewParameter(layer + "attention.wo.weight", {c, c});
    block.w1 = NewParameter(layer + "feed_forward.w1.weight", {f, c});
    block.w2 = NewParameter(layer + "feed_forward.w2.weight", {c, f});
    block.w3 = NewParameter(layer + "feed_forward.w3.weight", {f, c});
    block.attention_norm = NewParameter(layer + "attention_norm.weight", {c});
    block.ffn_norm = NewParameter(layer + "ffn_norm.weight", {c});
    layers_.push_back(std::move(block));
  }
  norm_ = NewParameter("norm.weight", {c});
  output_ =
      config.tie_weights ? tok_embeddings_ : NewParameter("output.weight", {config.vocab_size, c});
  angles_ = s.New("angles", {config.seq_len, config.head_dim() / 2}, DType::kComplex64, "buffer");
}

Tensor Llama::NewParameter(const std::string& name, Sizes sizes) {
  Tensor parameter = s_.New(name, std::move(sizes), DType::kFloat32, "parameter");
  parameter.MakeParameter();
  parameters_.push_back({name, parameter});
  return parameter;
}

Tensor Llama::Project(std::string_view name, Tensor x, const Tensor& weight) {
  const Scope scope(s_, std::string(name));
  return Linear(s_, std::move(x), weight, Tensor());
}

// Copies each key and value head for every head of the group that it serves.
// NOLINTNEXTLINE(performance-unnecessary-value-param): the name lives until the end.
Tensor Llama::RepeatHeads(Tensor x) {
  const int64_t times = config_.n_heads / config_.kv_heads();
  if (times == 1) return x;
  const Sizes from = x.sizes();
  const Tensor one = Reshape(s_, x, {from[0], from[1], from[2], 1, from[3]});
  return Reshape(s_, Expand(s_, one, 3, times), {from[0], from[1], from[2] * times, from[3]},
                 "repeat heads");  // h BTC
}

Tensor Llama::Attention(const Block& block, const Tensor& x) {
  const Scope scope(s_, "attention");
  const int64_t b = x.size(0);
  const int64_t t = x.size(1);
  const int64_t d = config_.head_dim();
  const auto heads = [&](const Tensor& y) { return Reshape(s_, y, {b, t, y.size(-1) / d, d}); };
  Tensor q = heads(Project("wq", x, block.wq));
  Tensor k = heads(Project("wk", x, block.wk));
  Tensor v = heads(Project("wv", x, block.wv));
  {
    const Tensor q32 = Cast(s_, q, DType::kFloat32, "rotate cast");
    const Tensor k32 = Cast(s_, k, DType::kFloat32, "rotate cast");
    const Tensor q_turned = Rotate(s_, q32, angles_);
    const Tensor k_turned = Rotate(s_, k32, angles_);
    Tensor q_out = Cast(s_, q_turned, q.dtype());
    Tensor k_out = Cast(s_, k_turned, k.dtype());
    q = std::move(q_out);
    k = std::move(k_out);
  }
  k = RepeatHeads(k);
  v = RepeatHeads(v);
  q = Transpose(s_, q, 1, 2);
  k = Transpose(s_, k, 1, 2);
  v = Transpose(s_, v, 1, 2);
  Tensor y = config_.AttentionFor(d) == "flash" ? FlashAttention(s_, q, k, v)
                                                : EfficientAttention(s_, q, k, v);
  y = Contiguous(s_, Transpose(s_, y, 1, 2));
  return Project("wo", Reshape(s_, y, {b, t, config_.dim}), block.wo);
}

// SwiGLU: w2(silu(w1 x) * w3 x). Saves both products, silu's result and their product.
Tensor Llama::FeedForward(const Block& block, const Tensor& x) {
  const Scope scope(s_, "feed_forward");
  Tensor gate = Silu(s_, Project("w1", x, block.w1));  // h BTF each
  Tensor up = Project("w3", x, block.w3);
  Tensor gated = Multiply(s_, gate, up);
  gate = up = Tensor();
  return Project("w2", std::move(gated), block.w2);
}

Tensor Llama::RunBlock(const Block& block, const Tensor& x) {
  // The arguments of a module's call live until it returns.
  const bool fused = config_.fused_norm();
  Tensor branch = Attention(block, RmsNorm(s_, x, block.attention_norm, fused));
  const Tensor h = Add(s_, x, branch);
  branch = Tensor();
  branch = FeedForward(block, RmsNorm(s_, h, block.ffn_norm, fused));
  return Add(s_, h, branch);
}

Model::Output Llama::Forward(const Tensor& indices, const Tensor& targets) {
  Tensor x = Embedding(s_, tok_embeddings_, indices);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Scope scope(s_, StrCat("layers.", i));
    const auto run = [this, &block = layers_[i]](const Tensor& input) {
      return RunBlock(block, input);
    };
    x = config_.checkpoint == "block" ? Checkpoint(s_, run, x) : run(x);
  }
  x = RmsNorm(s_, x, norm_, config_.fused_norm());
  const Scope scope(s_, "output");
  Output output;
  output.logits = Linear(s_, x, output_, Tensor(), "logits");  // h BTV
  if (config_.upcast_logits) {
    output.logits = Cast(s_, output.logits, DType::kFloat32, "logits cast", "logits");  // 4 BTV
  }
  output.loss = CrossEntropy(s_, output.logits, targets);
  return output;
}

}  // namespace memreplay::synth
