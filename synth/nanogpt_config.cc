#include "synth/nanogpt_config.h"

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

using NanoGptKeyList = std::vector<ConfigKey<NanoGptConfig>>;

const NanoGptKeyList& NanoGptTable() {
  static const NanoGptKeyList* const kKeys = [] {
    auto* keys = new NanoGptKeyList{
        // These keys are first because they set other keys.
        {"dataset", &NanoGptConfig::dataset, "", ApplyDataset},
        {"init_from", &NanoGptConfig::init_from, "scratch|gpt2|gpt2-medium|gpt2-large|gpt2-xl",
         ApplyPretrained},
        {"n_layer", &NanoGptConfig::n_layer},
        {"n_head", &NanoGptConfig::n_head},
        {"n_embd", &NanoGptConfig::n_embd},
        {"block_size", &NanoGptConfig::block_size},
        {"vocab_size", &NanoGptConfig::vocab_size},
        {"dropout", &NanoGptConfig::dropout},
        {"bias", &NanoGptConfig::bias},
        {"return_logits", &NanoGptConfig::return_logits},
    };
    AppendTrainerKeys(keys);
    // nanoGPT's keys without effect on memory.
    for (const char* name :
         {"out_dir", "log_interval", "always_save_checkpoint", "wandb_log", "wandb_project",
          "wandb_run_name", "learning_rate", "weight_decay", "beta1", "beta2", "decay_lr",
          "warmup_iters", "lr_decay_iters", "min_lr", "backend", "device"}) {
      keys->push_back({name, {}});
    }
    return keys;
  }();
  return *kKeys;
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

std::vector<KeyInfo> NanoGptKeys() { return DescribeKeys(NanoGptTable()); }

std::string_view NanoGptHint(std::string_view key) { return FindHint(kNanoGptHints, key); }

absl::Status ApplySetting(const Setting& setting, NanoGptConfig* config) {
  absl::Status set = SetKey(NanoGptTable(), setting, config);
  if (!absl::IsNotFound(set)) return set;
  const std::string_view hint = NanoGptHint(setting.key);
  return absl::InvalidArgumentError(
      StrCat("nanoGPT has no key ", setting.key, ": ",
             !hint.empty() ? hint
                           : "its configurator.py raises ValueError for it on the command line "
                             "and ignores it silently in a file"));
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

std::string ToJson(const NanoGptConfig& config) { return KeysToJson(NanoGptTable(), config); }

}  // namespace memreplay::synth
