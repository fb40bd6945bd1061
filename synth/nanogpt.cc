#include "synth/nanogpt.h"

#include <utility>

#include "synth/ops.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

// Applies a released model: from_pretrained() overrides the sizes and has biases.
void ApplyPretrained(NanoGptConfig* config) {
  struct Sizes {
    std::string_view name;
    int64_t n_layer, n_head, n_embd;
  };
  constexpr Sizes kModels[] = {
      {"gpt2", 12, 12, 768},
      {"gpt2-medium", 24, 16, 1024},
      {"gpt2-large", 36, 20, 1280},
      {"gpt2-xl", 48, 25, 1600},
  };
  for (const Sizes& model : kModels) {
    if (model.name != config->init_from) continue;
    config->n_layer = model.n_layer;
    config->n_head = model.n_head;
    config->n_embd = model.n_embd;
    config->vocab_size = 50257;
    config->bias = true;
  }
}

void ApplyDataset(NanoGptConfig* config) {
  if (config->dataset == "shakespeare_char") config->vocab_size = 65;
}

constexpr std::string_view kNoCheckpointing =
    "nanoGPT has no checkpointing; --checkpoint=block predicts what torch.utils.checkpoint around "
    "each block would do";

// Keys that users (and language models) expect.
constexpr KeyHint kNanoGptHints[] = {
    {"eval_batch_size", "nanoGPT evaluates with batch_size; a smaller one lowers both"},
    {"eval_block_size", "nanoGPT evaluates with block_size"},
    {"grad_checkpoint", kNoCheckpointing},
    {"gradient_checkpointing", kNoCheckpointing},
    {"seq_len", "nanoGPT calls it block_size"},
    {"n_layers", "nanoGPT calls it n_layer"},
    {"n_heads", "nanoGPT calls it n_head"},
    {"d_model", "nanoGPT calls it n_embd"},
    {"use_flash", "use --attention=flash"},
    {"accumulation_steps", "nanoGPT calls it gradient_accumulation_steps"},
};

}  // namespace

template <>
const ConfigKeys<NanoGptConfig>& KeysOf() {
  static const auto* const kKeys = new ConfigKeys<NanoGptConfig>{
      WithTrainerKeys<NanoGptConfig>(
          {
              // These keys are first because they set other keys.
              {"dataset", &NanoGptConfig::dataset, "", ApplyDataset},
              {"init_from", &NanoGptConfig::init_from,
               "scratch|gpt2|gpt2-medium|gpt2-large|gpt2-xl", ApplyPretrained},
              {"n_layer", &NanoGptConfig::n_layer},
              {"n_head", &NanoGptConfig::n_head},
              {"n_embd", &NanoGptConfig::n_embd},
              {"block_size", &NanoGptConfig::block_size},
              {"vocab_size", &NanoGptConfig::vocab_size},
              {"dropout", &NanoGptConfig::dropout},
              {"bias", &NanoGptConfig::bias},
              {"return_logits", &NanoGptConfig::return_logits},
          },
          {"out_dir", "log_interval", "always_save_checkpoint", "wandb_log", "wandb_project",
           "wandb_run_name", "learning_rate", "weight_decay", "beta1", "beta2", "decay_lr",
           "warmup_iters", "lr_decay_iters", "min_lr", "backend", "device"}),
      kNanoGptHints, "nanoGPT",
      ": its configurator.py raises ValueError for it on the command line and ignores it silently "
      "in a file"};
  return *kKeys;
}

int64_t NanoGptConfig::parameter_count() const {
  const int64_t c = n_embd;
  int64_t per_layer = 12 * c * c + 2 * c;
  int64_t rest = vocab_size * c + block_size * c + c;
  if (bias) {
    per_layer += 11 * c;
    rest += c;
  }
  if (!tie_weights) rest += vocab_size * c;
  return n_layer * per_layer + rest;
}

NanoGpt::NanoGpt(Session& s, const NanoGptConfig& config)
    : Model(s), config_(config), attention_(config.resolved_attention()) {
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

NanoGpt::Weights NanoGpt::NewWeights(const std::string& name, Sizes sizes) {
  Weights weights;
  const int64_t out = sizes[0];
  weights.weight = NewParameter(StrCat(name, ".weight"), std::move(sizes));
  if (config_.bias) weights.bias = NewParameter(StrCat(name, ".bias"), {out});
  return weights;
}

void NanoGpt::AccumulateGrads(Tensors grads) {
  for (Parameter& parameter : parameters_) {
    Tensor& p = parameter.tensor;
    Tensor grad;
    for (Tensor& candidate : grads) {
      if (candidate.defined() && candidate.element_count() == p.element_count()) {
        grad = std::move(candidate);
        break;
      }
    }
    if (!grad.defined()) grad = s_.New("bias grad", p.sizes(), p.dtype(), "temporary");
    if (p.grad().defined()) continue;
    p.grad() = std::move(grad);
    s_.writer().Retag(p.grad().handle(), "gradient");
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

absl::Status Validate(const NanoGptConfig& c) {
  RETURN_IF_ERROR(CheckRanges({
      {"n_layer", c.n_layer, 1, 4096},
      {"n_head", c.n_head, 1, 1 << 16},
      {"n_embd", c.n_embd, 1, 1 << 20},
      {"block_size", c.block_size, 1, 1 << 24},
      {"vocab_size", c.vocab_size, 1, 1 << 24},
  }));
  if (c.n_embd % c.n_head != 0) {
    const int64_t below = c.n_embd / c.n_head * c.n_head;
    return absl::InvalidArgumentError(StrCat(
        "n_embd ", c.n_embd, " is not divisible by n_head ", c.n_head,
        ": nanoGPT stops at `assert config.n_embd % config.n_head == 0`; the nearest that are: ",
        below > 0 ? StrCat(below, ", ") : std::string(), below + c.n_head));
  }
  if (c.dropout < 0 || c.dropout >= 1) {
    return absl::InvalidArgumentError("dropout: expected 0 <= p < 1");
  }
  return ValidateTrainer(c,
                         {c.n_layer, c.n_head, c.n_embd, 4 * c.n_embd, c.block_size, c.vocab_size});
}

absl::StatusOr<Trace> Program(const NanoGptConfig& config) {
  RETURN_IF_ERROR(Validate(config));
  const auto make = [&config](Session& s) -> std::unique_ptr<Model> {
    if (config.compile) return CompiledModel(s, config);
    return std::make_unique<NanoGpt>(s, config);
  };
  return TrainingProgram(config, config.block_size, make, ProgramHeader(config, "nanogpt"));
}

}  // namespace memreplay::synth
