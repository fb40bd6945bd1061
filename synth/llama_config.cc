#include "synth/llama_config.h"

#include <algorithm>

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

using Keys = std::vector<ConfigKey<LlamaConfig>>;

const Keys& AllKeys() {
  static const Keys* const kKeys = [] {
    auto* keys = new Keys{
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
    };
    AppendTrainerKeys(keys);
    return keys;
  }();
  return *kKeys;
}

constexpr KeyHint kHints[] = {
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

}  // namespace

std::vector<KeyInfo> LlamaKeys() { return DescribeKeys(AllKeys()); }

std::string_view LlamaHint(std::string_view key) { return FindHint(kHints, key); }

absl::Status ApplySetting(const Setting& setting, LlamaConfig* config) {
  absl::Status set = SetKey(AllKeys(), setting, config);
  if (!absl::IsNotFound(set)) return set;
  const std::string_view hint = LlamaHint(setting.key);
  return absl::InvalidArgumentError(
      StrCat("llama has no key ", setting.key,
             !hint.empty() ? StrCat(": ", hint) : "; memreplay synth llama --help lists them"));
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

std::string ToJson(const LlamaConfig& config) { return KeysToJson(AllKeys(), config); }

}  // namespace memreplay::synth
