#include "synth/trainer_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

// The estimate of the events that are written: about 2 GB of them, and some seconds.
constexpr double kMaxEvents = 2e7;
constexpr double kUsualCapability = 8.9;

// Returns the compute capability, "8.9" or "12.0"; nullopt if it is none.
std::optional<double> CapabilityOf(const TrainerConfig& config) {
  const std::string& text = config.compute_capability;
  const bool is_plain = text.size() > 2 && text[text.size() - 2] == '.' &&
                        text.find_first_not_of("0123456789.") == std::string::npos;
  double capability = 0;
  if (!is_plain || !absl::SimpleAtod(text, &capability)) return std::nullopt;
  if (capability < 5 || capability >= 20) return std::nullopt;
  return capability;
}

struct Multiprocessors {
  int64_t count, threads;  // threads per multiprocessor
};

// Returns the multiprocessors of the GPU; threads are from CUDA's programming guide.
Multiprocessors MultiprocessorsOf(const TrainerConfig& config) {
  struct Kind {
    std::string_view capability;
    Multiprocessors usual;
  };
  constexpr Kind kKinds[] = {{"7.0", {80, 2048}},   {"7.5", {40, 1024}},  {"8.0", {108, 2048}},
                             {"8.6", {82, 1536}},   {"8.9", {128, 1536}}, {"9.0", {132, 2048}},
                             {"10.0", {148, 2048}}, {"12.0", {170, 1536}}};
  Multiprocessors found = {108, 2048};
  for (const Kind& kind : kKinds) {
    if (kind.capability == config.compute_capability) found = kind.usual;
  }
  if (config.multiprocessors > 0) found.count = config.multiprocessors;
  return found;
}

// Returns the tiles that torch 2.6, 2.11 and 2.15 use.
DeviceAlgorithms AlgorithmsOf(const TrainerConfig& config) {
  DeviceAlgorithms algorithms;
  algorithms.multiprocessors = MultiprocessorsOf(config).count;
  const double capability = CapabilityOf(config).value_or(kUsualCapability);
  const bool newest = config.TorchAtLeast(2, 15);
  if (capability >= 9) {
    algorithms.sort_tile = 4608;
    algorithms.runs_tile = newest ? 4928 : 4480;
  } else if (capability < 8) {
    algorithms.sort_tile = 2816;
  } else if (capability < 8.6) {
    algorithms.runs_tile = newest ? 1344 : 1792;
  }
  algorithms.sorts_by_used_bits = newest;
  algorithms.wide_counts = algorithms.sums_few_rows_apart = config.TorchAtLeast(2, 11);
  return algorithms;
}

}  // namespace

bool TrainerConfig::TorchAtLeast(int major, int minor) const {
  const std::vector<std::string> parts = absl::StrSplit(torch_version, '.');
  int given_major = 0;
  int given_minor = 0;
  const bool known = parts.size() >= 2 && absl::SimpleAtoi(parts[0], &given_major) &&
                     absl::SimpleAtoi(parts[1], &given_minor);
  return known && (given_major > major || (given_major == major && given_minor >= minor));
}

std::string TrainerConfig::AttentionFor(int64_t channels_per_head) const {
  if (attention != "auto") return attention;
  if (!TorchAtLeast(2, 0)) return "manual";
  const bool flash = dtype != "float32" && CapabilityOf(*this).value_or(kUsualCapability) >= 8 &&
                     channels_per_head <= 256;
  return flash ? "flash" : "efficient";
}

std::optional<DType> TrainerConfig::autocast() const {
  if (dtype == "float16") return DType::kFloat16;
  if (dtype == "bfloat16") return DType::kBFloat16;
  return std::nullopt;
}

Platform TrainerConfig::platform() const {
  Platform platform;
  if (cublas_workspace > 0) {
    platform.cublas_workspace = Bytes(static_cast<uint64_t>(cublas_workspace));
  } else if (compute_capability.substr(0, 2) == "9.") {
    platform.cublas_workspace = MiB(32);
  }
  const Multiprocessors card = MultiprocessorsOf(*this);
  platform.resident_threads = card.count * card.threads;
  // `memreplay record` ran 2.6, 2.11 and 2.15; the releases in between are unknown.
  platform.flash_random_state_on_gpu = TorchAtLeast(2, 7);
  platform.norms_compact = TorchAtLeast(2, 15);
  platform.efficient_random_state_on_gpu = TorchAtLeast(2, 15);
  platform.small_attention_blocks = compute_capability != "8.0" && compute_capability != "9.0";
  platform.lt_workspace_kept = TorchAtLeast(2, 11) && !TorchAtLeast(2, 15);
  platform.algorithms = AlgorithmsOf(*this);
  // The workspace is kept up to 2.14.0 and freed after each call in 2.15.0, according to `memreplay
  // record` of two products.
  platform.workspace_per_call =
      workspace_policy == "auto" ? TorchAtLeast(2, 15) : workspace_policy == "per_call";
  return platform;
}

absl::Status CheckRanges(const std::vector<ConfigRange>& ranges) {
  for (const ConfigRange& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return absl::InvalidArgumentError(
          StrCat(range.key, ": expected ", range.low, " to ", range.high, ", found ", range.value));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateTrainer(const TrainerConfig& c, const ModelSizes& sizes) {
  const auto fail = [](const auto&... pieces) {
    return absl::InvalidArgumentError(StrCat(pieces...));
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const absl::Status ranges = CheckRanges({
      {"batch_size", c.batch_size, 1, 1 << 20},
      {"gradient_accumulation_steps", c.gradient_accumulation_steps, 1, 1 << 16},
      {"eval_interval", c.eval_interval, 1, kAny},
      {"eval_iters", c.eval_iters, 1, 1 << 20},
      {"max_iters", c.max_iters, 0, kAny},
      {"iterations", c.iterations, 0, 1 << 20},
      {"eval_passes", c.eval_passes, 0, 1 << 20},
      {"cublas_workspace", c.cublas_workspace, 0, int64_t{1} << 40},
      {"multiprocessors", c.multiprocessors, 0, 1024},  // as of --card custom:
  });
  if (!ranges.ok()) return ranges;
  if (!c.TorchAtLeast(1, 0)) {
    return fail("torch_version: expected a release such as 2.6, found '", c.torch_version, "'");
  }
  const std::optional<double> capability = CapabilityOf(c);
  if (!capability.has_value()) {
    return fail("compute_capability: expected one from 5.0 to 19.9, such as 8.9, found '",
                c.compute_capability, "'");
  }
  const int64_t head = sizes.channels / sizes.heads;
  if (c.attention == "flash" && (c.dtype == "float32" || head > 256)) {
    return fail(
        "attention=flash requires float16 or bfloat16 and at most 256 channels per head, found ",
        c.dtype, " and ", head);
  }
  if (c.compile && c.checkpoint != "none") {
    return fail("checkpoint=block is not modelled together with compile=True");
  }
  if (c.compile && c.AttentionFor(head) == "manual") {
    return fail("attention=manual is not modelled together with compile=True");
  }
  if (c.compile && !c.TorchAtLeast(2, 0)) {
    return fail("compile=True requires PyTorch 2.0 or later, found torch_version ",
                c.torch_version);
  }
  // All counts must fit into 64 bits, with room for sums.
  const auto length = static_cast<double>(sizes.length);
  const double bt = static_cast<double>(c.batch_size) * length;
  const auto heads = static_cast<double>(sizes.heads);
  const auto channels = static_cast<double>(sizes.channels);
  const auto widest = static_cast<double>(sizes.widest_layer);
  const auto vocabulary = static_cast<double>(sizes.vocabulary);
  const double largest =
      std::max({4 * bt * vocabulary, 4 * bt * widest, 4 * bt * heads * length,
                4 * widest * channels, 4 * vocabulary * channels, 128 * 32 * bt * heads});
  if (largest > std::ldexp(1.0, 50)) return fail("a tensor would be larger than 2^50 bytes");
  const double evaluations =
      2 + static_cast<double>(c.iterations) / static_cast<double>(c.eval_interval);
  const auto all_passes = static_cast<double>(2 * c.eval_iters);
  const double passes =
      c.eval_passes == 0 ? all_passes : std::min(all_passes, static_cast<double>(c.eval_passes));
  const double events =
      250.0 * static_cast<double>(sizes.layers) *
      (evaluations * passes +
       static_cast<double>(c.iterations) * static_cast<double>(c.gradient_accumulation_steps));
  if (events > kMaxEvents) {
    return fail("some ", std::llround(events),
                " events would have to be written; fewer iterations or eval_passes show the same "
                "memory use");
  }
  return absl::OkStatus();
}

}  // namespace memreplay::synth
