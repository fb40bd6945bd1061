#include "synth/nanogpt_model.h"

#include <utility>

#include "synth/ops.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

NanoGpt::NanoGpt(Session& s, const NanoGptConfig& config)
    : s_(s), config_(config), attention_(config.resolved_attention()) {
  const int64_t c = config.n_embd;
  wte_ = NewParameter("wte.weight", {config.vocab_size, c});
  wpe_ = NewParameter("wpe.weight", {config.block_size, c});
  for (int64_t i = 0; i < config.n_layer; ++i) {
    const std::string h = StrCat("h.", i, ".");
    Block block;
    block.ln_1 = NewWeights(StrCat(h, "ln_1"), {c});
    block.c_attn = NewWeights(StrCat(h, "attn.c_attn"), {3 * c, c});
    block.c_proj = NewWeights(StrCat(h, "attn.c_proj"), {c, c});
    if (attention_ == "manual") {
      const int64_t t = config.block_size;
      block.mask = s.New(StrCat(h, "attn.bias"), {1, 1, t, t}, DType::kFloat32, "buffer");  // 4 T^2
    }
    block.ln_2 = NewWeights(StrCat(h, "ln_2"), {c});
    block.c_fc = NewWeights(StrCat(h, "mlp.c_fc"), {4 * c, c});
    block.mlp_c_proj = NewWeights(StrCat(h, "mlp.c_proj"), {c, 4 * c});
    blocks_.push_back(std::move(block));
  }
  ln_f_ = NewWeights("ln_f", {c});
  lm_head_ = config.tie_weights ? wte_ : NewParameter("lm_head.weight", {config.vocab_size, c});
}

Tensor NanoGpt::NewParameter(const std::string& name, Sizes sizes) {
  Tensor parameter = s_.New(name, std::move(sizes), DType::kFloat32, "parameter");
  parameter.MakeParameter();
  parameters_.push_back({name, parameter});
  return parameter;
}

NanoGpt::Weights NanoGpt::NewWeights(const std::string& name, Sizes sizes) {
  Weights weights;
  const int64_t out = sizes[0];
  weights.weight = NewParameter(StrCat(name, ".weight"), std::move(sizes));
  if (config_.bias) weights.bias = NewParameter(StrCat(name, ".bias"), {out});
  return weights;
}

void NanoGpt::AccumulateGrads(Session& s, Tensors grads) {
  for (Parameter& parameter : parameters_) {
    Tensor& p = parameter.tensor;
    Tensor grad;
    for (Tensor& candidate : grads) {
      if (candidate.defined() && candidate.element_count() == p.element_count()) {
        grad = std::move(candidate);
        break;
      }
    }
    if (!grad.defined()) grad = s.New("bias grad", p.sizes(), p.dtype(), "temporary");
    if (p.grad().defined()) continue;
    p.grad() = std::move(grad);
    s.writer().Retag(p.grad().handle(), "gradient");
  }
}

Tensor NanoGpt::ManualAttention(const Block& block, const Tensor& q, const Tensor& k,
                                const Tensor& v, Tensor& att) {
  att = Scale(s_, BatchedMatMul(s_, q, Transpose(s_, k, -2, -1)), "scale");  // h BHTT
  att = MaskedFill(s_, std::move(att), EqualsZero(s_, block.mask));
  att = Softmax(s_, std::move(att));  // 4 BHTT under autocast
  att = Dropout(s_, std::move(att), config_.dropout);
  return BatchedMatMul(s_, att, v);
}

Tensor NanoGpt::Attention(const Block& block, const Tensor& x) {
  const Scope scope(s_, "attn");
  const int64_t b = x.size(0);
  const int64_t t = x.size(1);
  const int64_t c = x.size(2);
  Tensors qkv;
  {
    const Scope layer(s_, "c_attn");
    qkv = Split(s_, Linear(s_, x, block.c_attn.weight, block.c_attn.bias), {c, c, c});
  }
  const auto heads = [&](const Tensor& part) {
    return Transpose(s_, Reshape(s_, part, {b, t, config_.n_head, c / config_.n_head}), 1, 2);
  };
  const Tensor k = heads(qkv[1]);
  const Tensor q = heads(qkv[0]);
  const Tensor v = heads(qkv[2]);
  Tensor att;  // a name of this function: lives until it returns
  const bool drops = config_.dropout > 0 && s_.training();
  Tensor y = attention_ == "manual"  ? ManualAttention(block, q, k, v, att)
             : attention_ == "flash" ? FlashAttention(s_, q, k, v, drops)
                                     : EfficientAttention(s_, q, k, v);
  y = Contiguous(s_, Transpose(s_, y, 1, 2));
  y = Reshape(s_, y, {b, t, c});
  const Scope layer(s_, "c_proj");
  return Dropout(s_, Linear(s_, y, block.c_proj.weight, block.c_proj.bias), config_.dropout);
}

Tensor NanoGpt::Mlp(const Block& block, const Tensor& x) {
  const Scope scope(s_, "mlp");
  Tensor h;
  {
    const Scope layer(s_, "c_fc");
    h = Linear(s_, x, block.c_fc.weight, block.c_fc.bias);  // 4 h BTC
  }
  h = Gelu(s_, std::move(h));  // 4 h BTC
  const Scope layer(s_, "c_proj");
  h = Linear(s_, std::move(h), block.mlp_c_proj.weight, block.mlp_c_proj.bias);
  return Dropout(s_, std::move(h), config_.dropout);
}

Tensor NanoGpt::RunBlock(const Block& block, const Tensor& input) {
  // The arguments of a module's call live until it returns, so the outputs of the LayerNorms live
  // through the whole branch.
  Tensor branch = Attention(block, LayerNorm(s_, input, block.ln_1.weight, block.ln_1.bias));
  Tensor x = Add(s_, input, branch);
  branch = Tensor();
  branch = Mlp(block, LayerNorm(s_, x, block.ln_2.weight, block.ln_2.bias));
  return Add(s_, x, branch);
}

Model::Output NanoGpt::Forward(const Tensor& indices, const Tensor& targets) {
  const Tensor positions = s_.New("arange", {indices.size(1)}, DType::kInt64);
  const Tensor tok_emb = Embedding(s_, wte_, indices);
  const Tensor pos_emb = Embedding(s_, wpe_, positions);
  Tensor x = Dropout(s_, Add(s_, tok_emb, pos_emb), config_.dropout);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Scope scope(s_, StrCat("h.", i));
    const auto run = [this, &block = blocks_[i]](const Tensor& input) {
      return RunBlock(block, input);
    };
    x = config_.checkpoint == "block" ? Checkpoint(s_, run, x) : run(x);
  }
  x = LayerNorm(s_, x, ln_f_.weight, ln_f_.bias);
  const Scope scope(s_, "lm_head");
  Output output;
  output.logits = Linear(s_, x, lm_head_, Tensor(), "logits");  // h BTV
  output.loss = CrossEntropy(s_, output.logits, targets);
  return output;
}

}  // namespace memreplay::synth
