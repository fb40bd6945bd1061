#include "trace/synth/nanogpt_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>

#include "absl/strings/numbers.h"
#include "trace/strings.h"

namespace memreplay::synth {
namespace {

using Member = std::variant<std::monostate, int64_t NanoGptConfig::*, double NanoGptConfig::*,
                            bool NanoGptConfig::*, std::string NanoGptConfig::*>;

struct Key {
  std::string_view name;
  Member member;  // none: has nothing to do with memory
  std::string_view choices = {};
};

const Key kKeys[] = {
    // First, because they set others.
    {"dataset", &NanoGptConfig::dataset},
    {"init_from", &NanoGptConfig::init_from, "scratch|gpt2|gpt2-medium|gpt2-large|gpt2-xl"},
    {"n_layer", &NanoGptConfig::n_layer},
    {"n_head", &NanoGptConfig::n_head},
    {"n_embd", &NanoGptConfig::n_embd},
    {"block_size", &NanoGptConfig::block_size},
    {"vocab_size", &NanoGptConfig::vocab_size},
    {"batch_size", &NanoGptConfig::batch_size},
    {"gradient_accumulation_steps", &NanoGptConfig::gradient_accumulation_steps},
    {"dropout", &NanoGptConfig::dropout},
    {"bias", &NanoGptConfig::bias},
    {"dtype", &NanoGptConfig::dtype, "float32|bfloat16|float16"},
    {"compile", &NanoGptConfig::compile},
    {"grad_clip", &NanoGptConfig::grad_clip},
    {"eval_interval", &NanoGptConfig::eval_interval},
    {"eval_iters", &NanoGptConfig::eval_iters},
    {"max_iters", &NanoGptConfig::max_iters},
    {"eval_only", &NanoGptConfig::eval_only},
    {"attention", &NanoGptConfig::attention, "auto|flash|efficient|manual"},
    {"optimizer", &NanoGptConfig::optimizer, "adamw_fused|adamw_foreach|adamw_single|sgd"},
    {"checkpoint", &NanoGptConfig::checkpoint, "none|block"},
    {"return_logits", &NanoGptConfig::return_logits},
    {"tie_weights", &NanoGptConfig::tie_weights},
    {"torch_version", &NanoGptConfig::torch_version},
    {"workspace_policy", &NanoGptConfig::workspace_policy, "persistent|per_call"},
    {"cublas_workspace", &NanoGptConfig::cublas_workspace},
    {"compute_capability", &NanoGptConfig::compute_capability},
    {"iterations", &NanoGptConfig::iterations},
    {"eval_passes", &NanoGptConfig::eval_passes},
    {"eval_first", &NanoGptConfig::eval_first},
    {"eval_last", &NanoGptConfig::eval_last},
    // nanoGPT's, without effect on memory.
    {"out_dir", {}},
    {"log_interval", {}},
    {"always_save_checkpoint", {}},
    {"wandb_log", {}},
    {"wandb_project", {}},
    {"wandb_run_name", {}},
    {"learning_rate", {}},
    {"weight_decay", {}},
    {"beta1", {}},
    {"beta2", {}},
    {"decay_lr", {}},
    {"warmup_iters", {}},
    {"lr_decay_iters", {}},
    {"min_lr", {}},
    {"backend", {}},
    {"device", {}},
};

// Keys that people (and language models) believe in.
struct Hint {
  std::string_view key;
  std::string_view hint;
};
constexpr Hint kHints[] = {
    {"eval_batch_size", "nanoGPT evaluates with batch_size; a smaller one lowers both"},
    {"eval_block_size", "nanoGPT evaluates with block_size"},
    {"grad_checkpoint",
     "nanoGPT has no checkpointing; --checkpoint=block predicts what "
     "torch.utils.checkpoint around each block would do"},
    {"gradient_checkpointing",
     "nanoGPT has no checkpointing; --checkpoint=block predicts what "
     "torch.utils.checkpoint around each block would do"},
    {"seq_len", "nanoGPT calls it block_size"},
    {"n_layers", "nanoGPT calls it n_layer"},
    {"n_heads", "nanoGPT calls it n_head"},
    {"d_model", "nanoGPT calls it n_embd"},
    {"use_flash", "use --attention=flash"},
    {"accumulation_steps", "nanoGPT calls it gradient_accumulation_steps"},
};

std::string_view Strip(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// Integers, with underscores as Python allows, and products of them.
std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t product = 1;
  while (true) {
    const size_t star = text.find('*');
    std::string digits;
    for (const char c : Strip(text.substr(0, star))) {
      if (c != '_') digits.push_back(c);
    }
    int64_t factor = 0;
    if (!absl::SimpleAtoi(digits, &factor) || __builtin_mul_overflow(product, factor, &product)) {
      return std::nullopt;
    }
    if (star == std::string_view::npos) return product;
    text.remove_prefix(star + 1);
  }
}

absl::Status WrongType(const Setting& setting, std::string_view expected) {
  return absl::InvalidArgumentError(
      StrCat(setting.key, ": expected ", expected, ", found '", setting.value, "'"));
}

absl::Status UnknownKey(const Setting& setting) {
  const std::string_view hint = HintForKey(setting.key);
  return absl::InvalidArgumentError(
      StrCat("nanoGPT has no key ", setting.key, ": ",
             !hint.empty() ? hint
                           : "its configurator.py raises ValueError for it on the command line "
                             "and ignores it silently in a file"));
}

bool IsChoice(std::string_view choices, std::string_view value) {
  while (true) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

// The released models: from_pretrained() overrides the sizes and has biases.
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

}  // namespace

std::string_view HintForKey(std::string_view key) {
  for (const Hint& hint : kHints) {
    if (hint.key == key) return hint.hint;
  }
  return {};
}

std::vector<KeyInfo> NanoGptKeys() {
  const NanoGptConfig defaults;
  std::vector<KeyInfo> keys;
  for (const Key& key : kKeys) {
    KeyInfo info{key.name, "V", ""};
    if (const auto* integer = std::get_if<int64_t NanoGptConfig::*>(&key.member)) {
      info.values = "N";
      info.default_value = StrCat(defaults.**integer);
    } else if (const auto* number = std::get_if<double NanoGptConfig::*>(&key.member)) {
      info.values = "X";
      info.default_value = StrCat(defaults.**number);
    } else if (const auto* boolean = std::get_if<bool NanoGptConfig::*>(&key.member)) {
      info.values = "True|False";
      info.default_value = defaults.**boolean ? "True" : "False";
    } else if (const auto* text = std::get_if<std::string NanoGptConfig::*>(&key.member)) {
      if (!key.choices.empty()) info.values = std::string(key.choices);
      info.default_value = defaults.**text;
    }
    keys.push_back(std::move(info));
  }
  return keys;
}

absl::Status ApplySetting(const Setting& setting, NanoGptConfig* config) {
  const Key* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                [&](const Key& k) { return k.name == setting.key; });
  if (key == std::end(kKeys)) return UnknownKey(setting);
  const std::string_view value = Strip(setting.value);
  if (const auto* integer = std::get_if<int64_t NanoGptConfig::*>(&key->member)) {
    const std::optional<int64_t> parsed = ParseInteger(value);
    if (!parsed) return WrongType(setting, "an integer");
    config->** integer = *parsed;
  } else if (const auto* number = std::get_if<double NanoGptConfig::*>(&key->member)) {
    if (!absl::SimpleAtod(ToAbsl(value), &(config->**number)) || !std::isfinite(config->**number)) {
      return WrongType(setting, "a number");
    }
  } else if (const auto* boolean = std::get_if<bool NanoGptConfig::*>(&key->member)) {
    if (value != "True" && value != "False") return WrongType(setting, "True or False");
    config->** boolean = value == "True";
  } else if (const auto* text = std::get_if<std::string NanoGptConfig::*>(&key->member)) {
    std::string_view bare = value;
    if (bare.size() >= 2 && (bare.front() == '\'' || bare.front() == '"') &&
        bare.back() == bare.front()) {
      bare = bare.substr(1, bare.size() - 2);
    }
    if (!key->choices.empty() && !IsChoice(key->choices, bare)) {
      return WrongType(setting, StrCat("one of ", key->choices));
    }
    config->** text = std::string(bare);
    if (setting.key == "dataset" && bare == "shakespeare_char") config->vocab_size = 65;
    if (setting.key == "init_from") ApplyPretrained(config);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Setting>> ReadConfigFile(std::string_view text, std::string_view name) {
  std::vector<Setting> settings;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    // A comment begins at a '#' outside quotes.
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (quote == 0 && line[i] == '#') {
        line = line.substr(0, i);
      } else if (quote == 0 && (line[i] == '\'' || line[i] == '"')) {
        quote = line[i];
      } else if (line[i] == quote) {
        quote = 0;
      }
    }
    line = Strip(line);
    if (line.empty() || line.substr(0, 7) == "import ") continue;
    const size_t equals = line.find('=');
    const std::string_view key = Strip(line.substr(0, equals));
    const bool is_name = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_';
    });
    if (equals == std::string_view::npos || !is_name) {
      return absl::InvalidArgumentError(
          StrCat(name, ": line ", line_number, ": expected key = value, found '", line, "'"));
    }
    settings.push_back({std::string(key), std::string(Strip(line.substr(equals + 1)))});
  }
  return settings;
}

absl::Status Validate(const NanoGptConfig& c) {
  const auto fail = [](const auto&... pieces) {
    return absl::InvalidArgumentError(StrCat(pieces...));
  };
  struct Range {
    std::string_view key;
    int64_t value, low, high;
  };
  const Range ranges[] = {
      {"n_layer", c.n_layer, 1, 4096},
      {"n_head", c.n_head, 1, 1 << 16},
      {"n_embd", c.n_embd, 1, 1 << 20},
      {"block_size", c.block_size, 1, 1 << 24},
      {"vocab_size", c.vocab_size, 1, 1 << 24},
      {"batch_size", c.batch_size, 1, 1 << 20},
      {"gradient_accumulation_steps", c.gradient_accumulation_steps, 1, 1 << 16},
      {"eval_interval", c.eval_interval, 1, std::numeric_limits<int64_t>::max()},
      {"eval_iters", c.eval_iters, 1, 1 << 20},
      {"max_iters", c.max_iters, 0, std::numeric_limits<int64_t>::max()},
      {"iterations", c.iterations, 0, 1 << 20},
      {"eval_passes", c.eval_passes, 0, 1 << 20},
      {"cublas_workspace", c.cublas_workspace, 0, int64_t{1} << 40},
  };
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return fail(range.key, ": expected ", range.low, " to ", range.high, ", found ", range.value);
    }
  }
  if (c.n_embd % c.n_head != 0) {
    const int64_t below = c.n_embd / c.n_head * c.n_head;
    return fail("n_embd ", c.n_embd, " is not divisible by n_head ", c.n_head,
                ": nanoGPT stops at `assert config.n_embd % config.n_head == 0`; the nearest that "
                "are: ",
                below > 0 ? StrCat(below, ", ") : std::string(), below + c.n_head);
  }
  if (c.dropout < 0 || c.dropout >= 1) return fail("dropout: expected 0 <= p < 1");
  const int64_t head = c.n_embd / c.n_head;
  if (c.attention == "flash" && (c.dtype == "float32" || head > 256)) {
    return fail(
        "attention=flash wants float16 or bfloat16 and at most 256 channels per head, "
        "found ",
        c.dtype, " and ", head);
  }
  if (c.compile && c.checkpoint != "none") {
    return fail("checkpoint=block is not modelled together with compile=True");
  }
  if (c.compile && c.resolved_attention() == "manual") {
    return fail("attention=manual is not modelled together with compile=True");
  }
  if (c.compile && c.torch_version.substr(0, 2) == "1.") {
    return fail("compile=True wants PyTorch 2.0 or later, found torch_version ", c.torch_version);
  }
  // Everything is counted in 64 bits with room to add up.
  const double bt = static_cast<double>(c.batch_size) * static_cast<double>(c.block_size);
  const auto h = static_cast<double>(c.n_head);
  const auto embd = static_cast<double>(c.n_embd);
  const double largest =
      std::max({4 * bt * static_cast<double>(c.vocab_size), 16 * bt * embd,
                4 * bt * h * static_cast<double>(c.block_size), 16 * embd * embd,
                static_cast<double>(c.vocab_size) * embd * 4, 128 * 32 * bt * h});
  if (largest > std::ldexp(1.0, 50)) return fail("a tensor would be larger than 2^50 bytes");
  const double evaluations =
      2 + static_cast<double>(c.iterations) / static_cast<double>(c.eval_interval);
  const auto all_passes = static_cast<double>(2 * c.eval_iters);
  const double passes =
      c.eval_passes == 0 ? all_passes : std::min(all_passes, static_cast<double>(c.eval_passes));
  const double events =
      150.0 * static_cast<double>(c.n_layer) *
      (evaluations * passes +
       static_cast<double>(c.iterations) * static_cast<double>(c.gradient_accumulation_steps));
  if (events > 2e8) {
    return fail("some ", std::llround(events),
                " events would have to be written: fewer "
                "iterations or eval_passes show the same memory");
  }
  return absl::OkStatus();
}

std::string NanoGptConfig::resolved_attention() const {
  if (attention != "auto") return attention;
  double capability = 0;
  if (torch_version.substr(0, 2) == "1.") return "manual";
  if (!absl::SimpleAtod(compute_capability, &capability)) capability = 8.9;
  const bool flash = dtype != "float32" && capability >= 8 && n_embd / n_head <= 256;
  return flash ? "flash" : "efficient";
}

Platform NanoGptConfig::platform() const {
  Platform platform;
  if (cublas_workspace > 0) {
    platform.cublas_workspace = Bytes(static_cast<uint64_t>(cublas_workspace));
  } else if (compute_capability.substr(0, 2) == "9.") {
    platform.cublas_workspace = MiB(32);
  }
  platform.workspace_per_call = workspace_policy == "per_call";
  return platform;
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

std::string ToJson(const NanoGptConfig& config) {
  std::string json = "{";
  for (const Key& key : kKeys) {
    std::string value;
    if (const auto* integer = std::get_if<int64_t NanoGptConfig::*>(&key.member)) {
      value = StrCat(config.**integer);
    } else if (const auto* number = std::get_if<double NanoGptConfig::*>(&key.member)) {
      value = StrCat(config.**number);
    } else if (const auto* boolean = std::get_if<bool NanoGptConfig::*>(&key.member)) {
      value = config.**boolean ? "true" : "false";
    } else if (const auto* text = std::get_if<std::string NanoGptConfig::*>(&key.member)) {
      value = "\"";
      for (const char c : config.**text) {
        if (c == '"' || c == '\\') value.push_back('\\');
        value.push_back(static_cast<unsigned char>(c) < 0x20 ? '?' : c);
      }
      value.push_back('"');
    } else {
      continue;
    }
    StrAppend(&json, json.size() > 1 ? "," : "", "\"", key.name, "\":", value);
  }
  return json + "}";
}

}  // namespace memreplay::synth
