#include "synth/llama.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "synth/ops.h"
#include "synth/training.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

void ApplyPreset(LlamaConfig* config) {
  struct Sizes {
    std::string_view name;
    int64_t dim, n_layers, n_heads, n_kv_heads, ffn_dim, vocab_size;
    bool tied;
  };
  constexpr Sizes kModels[] = {
      {"llama-2-7b", 4096, 32, 32, 32, 11008, 32000, false},
      {"llama-2-13b", 5120, 40, 40, 40, 13824, 32000, false},
      {"llama-3-8b", 4096, 32, 32, 8, 14336, 128256, false},
      {"llama-3.2-1b", 2048, 16, 32, 8, 8192, 128256, true},
      {"llama-3.2-3b", 3072, 28, 24, 8, 8192, 128256, true},
  };
  for (const Sizes& model : kModels) {
    if (model.name != config->preset) continue;
    config->dim = model.dim;
    config->n_layers = model.n_layers;
    config->n_heads = model.n_heads;
    config->n_kv_heads = model.n_kv_heads;
    config->ffn_dim = model.ffn_dim;
    config->vocab_size = model.vocab_size;
    config->tie_weights = model.tied;
  }
}

constexpr KeyHint kLlamaHints[] = {
    {"hidden_size", "called dim here"},
    {"n_embd", "called dim here"},
    {"num_hidden_layers", "called n_layers here"},
    {"n_layer", "called n_layers here"},
    {"num_attention_heads", "called n_heads here"},
    {"n_head", "called n_heads here"},
    {"num_key_value_heads", "called n_kv_heads here"},
    {"intermediate_size", "called ffn_dim here"},
    {"hidden_dim", "called ffn_dim here"},
    {"max_seq_len",
     "called seq_len here: the length of the sequences in a batch, not the model's maximum"},
    {"max_position_embeddings",
     "called seq_len here: the length of the sequences in a batch, not the model's maximum"},
    {"block_size", "called seq_len here"},
    {"max_batch_size", "called batch_size here"},
    {"tie_word_embeddings", "called tie_weights here"},
    {"gradient_checkpointing", "use --checkpoint=block"},
    {"torch_dtype", "called dtype here: the type used by autocast; weights are fp32"},
    {"dropout", "the model has none"},
    {"bias", "the model has none"},
};

// The Llama-like model, op by op.
class Llama final : public Model {
 public:
  Llama(Session& s, const LlamaConfig& config) : Model(s), config_(config) {
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
    output_ = config.tie_weights ? tok_embeddings_
                                 : NewParameter("output.weight", {config.vocab_size, c});
    angles_ = s.New("angles", {config.seq_len, config.head_dim() / 2}, DType::kComplex64, "buffer");
  }

  Model::Output Forward(const Tensor& indices, const Tensor& targets) override {
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

 private:
  struct Block {
    Tensor wq, wk, wv, wo, w1, w2, w3, attention_norm, ffn_norm;
  };

  Tensor Project(std::string_view name, Tensor x, const Tensor& weight) {
    const Scope scope(s_, std::string(name));
    return Linear(s_, std::move(x), weight, Tensor());
  }

  // Copies each key and value head for every head of the group that it serves.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the name lives until the end.
  Tensor RepeatHeads(Tensor x) {
    const int64_t times = config_.n_heads / config_.kv_heads();
    if (times == 1) return x;
    const Sizes from = x.sizes();
    const Tensor one = Reshape(s_, x, {from[0], from[1], from[2], 1, from[3]});
    return Reshape(s_, Expand(s_, one, 3, times), {from[0], from[1], from[2] * times, from[3]},
                   "repeat heads");  // h BTC
  }

  Tensor Attention(const Block& block, const Tensor& x) {
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
  Tensor FeedForward(const Block& block, const Tensor& x) {
    const Scope scope(s_, "feed_forward");
    Tensor gate = Silu(s_, Project("w1", x, block.w1));  // h BTF each
    Tensor up = Project("w3", x, block.w3);
    Tensor gated = Multiply(s_, gate, up);
    gate = up = Tensor();
    return Project("w2", std::move(gated), block.w2);
  }

  Tensor RunBlock(const Block& block, const Tensor& x) {
    // The arguments of a module's call live until it returns.
    const bool fused = config_.fused_norm();
    Tensor branch = Attention(block, RmsNorm(s_, x, block.attention_norm, fused));
    const Tensor h = Add(s_, x, branch);
    branch = Tensor();
    branch = FeedForward(block, RmsNorm(s_, h, block.ffn_norm, fused));
    return Add(s_, h, branch);
  }

  const LlamaConfig config_;
  Tensor tok_embeddings_, norm_, output_, angles_;
  std::vector<Block> layers_;
};

}  // namespace

template <>
const ConfigKeys<LlamaConfig>& KeysOf() {
  static const auto* const kKeys = new ConfigKeys<LlamaConfig>{
      WithTrainerKeys<LlamaConfig>({
          // The preset is first because it sets other keys.
          {"preset", &LlamaConfig::preset,
           "none|llama-2-7b|llama-2-13b|llama-3-8b|llama-3.2-1b|llama-3.2-3b", ApplyPreset},
          {"dim", &LlamaConfig::dim},
          {"n_layers", &LlamaConfig::n_layers},
          {"n_heads", &LlamaConfig::n_heads},
          {"n_kv_heads", &LlamaConfig::n_kv_heads},
          {"ffn_dim", &LlamaConfig::ffn_dim},
          {"ffn_dim_multiplier", &LlamaConfig::ffn_dim_multiplier},
          {"multiple_of", &LlamaConfig::multiple_of},
          {"vocab_size", &LlamaConfig::vocab_size},
          {"seq_len", &LlamaConfig::seq_len},
          {"rms_norm", &LlamaConfig::rms_norm, "auto|eager|fused"},
          {"upcast_logits", &LlamaConfig::upcast_logits},
      }),
      kLlamaHints, "llama", "; memreplay synth llama --help lists them"};
  return *kKeys;
}

int64_t LlamaConfig::hidden_dim() const {
  if (ffn_dim > 0) return ffn_dim;
  const int64_t two_thirds = 2 * (4 * dim) / 3;
  const auto wide = static_cast<int64_t>(ffn_dim_multiplier * static_cast<double>(two_thirds));
  return (wide + multiple_of - 1) / multiple_of * multiple_of;
}

bool LlamaConfig::fused_norm() const {
  return rms_norm == "auto" ? TorchAtLeast(2, 8) : rms_norm == "fused";
}

int64_t LlamaConfig::parameter_count() const {
  const int64_t projections = dim * head_dim() * 2 * (n_heads + kv_heads());
  const int64_t layer = projections + 3 * dim * hidden_dim() + 2 * dim;
  return n_layers * layer + dim + (tie_weights ? 1 : 2) * vocab_size * dim;
}

absl::Status Validate(const LlamaConfig& c) {
  const auto fail = [](const auto&... pieces) {
    return absl::InvalidArgumentError(StrCat(pieces...));
  };
  RETURN_IF_ERROR(CheckRanges({
      {"dim", c.dim, 1, 1 << 20},
      {"n_layers", c.n_layers, 1, 4096},
      {"n_heads", c.n_heads, 1, 1 << 16},
      {"n_kv_heads", c.n_kv_heads, 0, 1 << 16},
      {"ffn_dim", c.ffn_dim, 0, 1 << 22},
      {"multiple_of", c.multiple_of, 1, 1 << 20},
      {"vocab_size", c.vocab_size, 1, 1 << 24},
      {"seq_len", c.seq_len, 1, 1 << 24},
  }));
  if (c.ffn_dim_multiplier <= 0 || c.ffn_dim_multiplier > 64) {
    return fail("ffn_dim_multiplier: expected more than 0 and at most 64, found ",
                c.ffn_dim_multiplier);
  }
  if (c.dim % c.n_heads != 0) {
    return fail("dim ", c.dim, " is not divisible by n_heads ", c.n_heads);
  }
  if (c.head_dim() % 2 != 0) {
    return fail("dim / n_heads is ", c.head_dim(),
                ": rotary embedding rotates pairs of channels and requires an even number");
  }
  if (c.n_heads % c.kv_heads() != 0) {
    return fail("n_heads ", c.n_heads, " is not divisible by n_kv_heads ", c.kv_heads(),
                ": every key and value head serves the same number of heads");
  }
  if (c.compile) return fail("compile=True is modelled for nanogpt only");
  if (c.AttentionFor(c.head_dim()) == "manual") {
    return fail("attention=manual is modelled for nanogpt only");
  }
  if (c.hidden_dim() < 1) return fail("ffn_dim: the feed-forward part would be empty");
  return ValidateTrainer(
      c, {c.n_layers, c.n_heads, c.dim, std::max(c.hidden_dim(), c.dim), c.seq_len, c.vocab_size});
}

absl::StatusOr<Trace> Program(const LlamaConfig& config) {
  RETURN_IF_ERROR(Validate(config));
  const auto make = [&config](Session& s) { return std::make_unique<Llama>(s, config); };
  return TrainingProgram(config, config.seq_len, make, ProgramHeader(config, "llama"));
}

}  // namespace memreplay::synth
