// Tests nanoGPT's schedule: closed forms of its peak, and its configuration.
#include "synth/nanogpt.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "gtest/gtest.h"
#include "tests/trace/support/program_digest.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

constexpr double kWorkspace = 8519680;

std::map<std::string, double> Peaks(const NanoGptConfig& config) {
  const absl::StatusOr<Trace> program = Program(config);
  EXPECT_TRUE(program.ok()) << program.status();
  std::map<std::string, double> peaks;
  for (const auto& [phase, bytes] : PhasePeaks(*program)) peaks[phase] = double(bytes);
  return peaks;
}

// A configuration in which the logits are most of the peak.
NanoGptConfig RandomConfig(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  NanoGptConfig config;
  config.n_layer = pick(1, 6);
  config.n_head = pick(1, 8);
  config.n_embd = config.n_head * 32 * pick(1, 3);
  config.block_size = 128 * pick(3, 8);
  config.batch_size = pick(10, 24);
  config.vocab_size = 64 * pick(600, 1200);
  config.gradient_accumulation_steps = 2;
  config.dtype = pick(0, 1) == 0 ? "float16" : "bfloat16";
  config.compile = false;
  return config;
}

struct Dimensions {
  explicit Dimensions(const NanoGptConfig& config)
      : n(double(config.parameter_count())),
        l(double(config.n_layer)),
        bt(double(config.batch_size * config.block_size)),
        btc(bt * double(config.n_embd)),
        bht(bt * double(config.n_head)),
        bhtt(bht * double(config.block_size)),
        e(bt * double(config.vocab_size)),
        n_mm(double(config.vocab_size * config.n_embd) +
             12 * l * double(config.n_embd * config.n_embd)) {}
  double n, l, bt, btc, bht, bhtt, e, n_mm;
};

// Of the second micro-step of an iteration after the first; blocks are rounded to
// 512 bytes, which the formulas leave out.
constexpr double kTolerance = 2e-4;

void ExpectNear(double found, double expected, const NanoGptConfig& config) {
  EXPECT_NEAR(found / expected, 1, kTolerance) << ProgramHeader(config, "nanogpt");
}

TEST(NanoGptClosedForm, AmpFlash) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    NanoGptConfig config = RandomConfig(random);
    config.dropout = i % 3 == 0 ? 0.1 : 0;
    const Dimensions d(config);
    double expected = 16 * d.n + 2 * d.n_mm + d.l * (36 * d.btc + 4 * d.bht + 16 * d.bt) +
                      6 * d.btc + 8 * d.bt + 12 * d.e + 32 * d.bt + 2 * kWorkspace;
    if (config.dropout > 0) expected += 2 * d.l * d.btc + d.btc;
    std::map<std::string, double> peaks = Peaks(config);
    ExpectNear(peaks["it1.bwd1"], expected, config);
    ExpectNear(peaks["it1.bwd0"], expected - 4 * d.n, config);
  }
}

TEST(NanoGptClosedForm, AmpManual) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    NanoGptConfig config = RandomConfig(random);
    config.n_layer = 1 + i % 2;
    config.n_head = std::min<int64_t>(config.n_head, 4);
    config.n_embd = config.n_head * 64;
    config.attention = "manual";
    const Dimensions d(config);
    const auto t = double(config.block_size);
    const double expected = 16 * d.n + 2 * d.n_mm +
                            d.l * (36 * d.btc + 6 * d.bhtt + t * t + 16 * d.bt) + 6 * d.btc +
                            8 * d.bt + 12 * d.e + 32 * d.bt + 2 * kWorkspace + 4 * d.l * t * t;
    ExpectNear(Peaks(config)["it1.bwd1"], expected, config);
  }
}

TEST(NanoGptClosedForm, Fp32Efficient) {
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    NanoGptConfig config = RandomConfig(random);
    config.dtype = "float32";
    const Dimensions d(config);
    const double expected = 16 * d.n + d.l * (64 * d.btc + 4 * d.bht + 16 * d.bt) + 8 * d.btc +
                            8 * d.bt + 16 * d.e + 32 * d.bt + 2 * kWorkspace;
    ExpectNear(Peaks(config)["it1.bwd1"], expected, config);
  }
}

TEST(NanoGptClosedForm, Compiled) {
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    NanoGptConfig config = RandomConfig(random);
    config.compile = true;
    config.return_logits = i % 2 == 0;
    const Dimensions d(config);
    // The graph's own saved list; the zeros for the logits' gradient are 2 e of it.
    const double expected = 16 * d.n + 2 * d.n_mm + d.l * (36 * d.btc + 4 * d.bht + 16 * d.bt) +
                            6 * d.btc + (config.return_logits ? 6 : 4) * d.e + 2 * kWorkspace;
    EXPECT_NEAR(Peaks(config)["it1.bwd1"] / expected, 1, 1e-3) << ProgramHeader(config, "nanogpt");
  }
}

TEST(NanoGptClosedForm, EvaluationHoldsThreeLogits) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    const NanoGptConfig config = RandomConfig(random);
    const Dimensions d(config);
    std::map<std::string, double> peaks = Peaks(config);
    // tok_emb and ln_f's output are 8 BTC of it.
    const double casts = 2 * d.n_mm + 8 * d.btc + kWorkspace;
    EXPECT_NEAR(peaks["eval@iter0"] / (4 * d.n + casts + 10 * d.e), 1, 2e-3)
        << ProgramHeader(config, "nanogpt");
    EXPECT_NEAR(peaks["eval"] / (12 * d.n + casts + kWorkspace + 12 * d.e), 1, 2e-3)
        << ProgramHeader(config, "nanogpt");
  }
}

TEST(NanoGptProgram, LeavesOnlyWhatATrainingRunKeeps) {
  NanoGptConfig config;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_embd = 64;
  config.block_size = 64;
  config.batch_size = 2;
  config.gradient_accumulation_steps = 2;
  for (const bool compile : {false, true}) {
    for (const bool bias : {false, true}) {
      for (const char* optimizer : {"adamw_fused", "adamw_foreach", "adamw_single", "sgd"}) {
        config.compile = compile;
        config.bias = bias;
        config.optimizer = optimizer;
        const absl::StatusOr<Trace> program = Program(config);
        ASSERT_TRUE(program.ok()) << program.status();
        std::map<uint64_t, std::string> live;  // tag by handle
        for (const Event& event : program->devices[0].events) {
          if (event.kind == EventKind::kAlloc) {
            const auto frames = program->stacks[event.text_or_stack];
            live[event.address.value()] =
                program->strings[program->stacks.frame(frames[0]).filename];
          } else if (event.kind == EventKind::kFree) {
            ASSERT_EQ(live.erase(event.address.value()), 1u);
          }
        }
        std::map<std::string, int> left;
        for (const auto& [handle, tag] : live) ++left[tag];
        const int tensors = 3 + 2 * 6 + (bias ? 2 * 6 + 1 : 0);
        const std::string name = optimizer;
        std::map<std::string, int> expected = {
            {"parameter", tensors}, {"input", 2}, {"workspace", 2}, {"logits", 2}};
        // The loss divided by the number of micro-steps is an activation.
        expected["logits"] = 1;
        expected["activation"] = 1;
        if (name != "sgd") expected["optimizer"] = (name == "adamw_fused" ? 3 : 2) * tensors;
        EXPECT_EQ(left, expected) << name << compile << bias;
      }
    }
  }
}

TEST(NanoGptProgram, KeepsFlashAttentionsRandomStateAsTheReleaseDoes) {
  NanoGptConfig config;
  config.n_layer = 3;
  config.n_head = 2;
  config.n_embd = 64;
  config.block_size = 64;
  config.batch_size = 2;
  config.gradient_accumulation_steps = 1;
  config.compile = false;
  config.iterations = 1;
  config.eval_first = config.eval_last = false;
  for (const auto& [release, states] : {std::pair("2.6", 0), {"2.15", 3}}) {
    config.torch_version = release;
    const absl::StatusOr<Trace> program = Program(config);
    ASSERT_TRUE(program.ok()) << program.status();
    int found = 0;
    for (const Event& event : program->devices[0].events) {
      if (event.kind != EventKind::kAlloc) continue;
      const auto frames = program->stacks[event.text_or_stack];
      const std::string_view name = program->strings[program->stacks.frame(frames[0]).name];
      found += name.find("rng_state") != std::string_view::npos;
    }
    EXPECT_EQ(found, states) << release;
  }
}

std::string Refusal(const std::vector<Setting>& settings) {
  NanoGptConfig config;
  for (const Setting& setting : settings) {
    const absl::Status applied = ApplySetting(setting, &config);
    if (!applied.ok()) return std::string(applied.message());
  }
  return std::string(Validate(config).message());
}

TEST(NanoGptConfig, RefusesWhatNanoGptWouldRefuse) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal({{"n_embd", "512"}, {"n_head", "12"}}),
            "n_embd 512 is not divisible by n_head 12: nanoGPT stops at `assert config.n_embd % "
            "config.n_head == 0`; the nearest that are: 504, 516");
  EXPECT_EQ(Refusal({{"batch_size", "0"}}), "batch_size: expected 1 to 1048576, found 0");
  EXPECT_EQ(Refusal({{"dtype", "int8"}}),
            "dtype: expected one of float32|bfloat16|float16, found 'int8'");
  EXPECT_EQ(Refusal({{"compile", "yes"}}), "compile: expected True or False, found 'yes'");
  EXPECT_EQ(Refusal({{"n_layer", "6.5"}}), "n_layer: expected an integer, found '6.5'");
  EXPECT_EQ(Refusal({{"eval_batch_size", "4"}}),
            "nanoGPT has no key eval_batch_size: nanoGPT evaluates with batch_size; a smaller one "
            "lowers both");
  EXPECT_NE(Refusal({{"vocab_size", "16777216"}, {"batch_size", "1048576"}}), "");
  EXPECT_NE(Refusal({{"n_layer", "99999999999999999999"}}), "");
  EXPECT_NE(Refusal({{"attention", "flash"}, {"dtype", "float32"}}), "");
  EXPECT_EQ(Refusal({{"torch_version", "soon"}}),
            "torch_version: expected a release such as 2.6, found 'soon'");
}

TEST(NanoGptConfig, ReadsConfigFilesAsTheyAre) {
  const absl::StatusOr<std::vector<Setting>> settings = ReadConfigFile(
      "# train a miniature character-level shakespeare model\n"
      "import time\n"
      "\n"
      "out_dir = 'out-#1'   # not a comment inside quotes\n"
      "gradient_accumulation_steps = 5 * 8\n"
      "max_iters=600_000\n"
      "dropout = 0.2\n"
      "compile = False # do not torch compile the model\n"
      "dataset = 'shakespeare_char'\n"
      "dtype=\"float16\"\n",
      "c.py");
  ASSERT_TRUE(settings.ok()) << settings.status();
  NanoGptConfig config;
  for (const Setting& setting : *settings) {
    const absl::Status applied = ApplySetting(setting, &config);
    EXPECT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(config.gradient_accumulation_steps, 40);
  EXPECT_EQ(config.max_iters, 600000);
  EXPECT_EQ(config.dropout, 0.2);
  EXPECT_FALSE(config.compile);
  EXPECT_EQ(config.vocab_size, 65);
  EXPECT_EQ(config.dtype, "float16");
  EXPECT_EQ(ReadConfigFile("a = 1\nprint(a)\n", "c.py").status().message(),
            "c.py: line 2: expected key = value, found 'print(a)'");
}

TEST(NanoGptConfig, CountsParametersAsNanoGptDoes) {
  NanoGptConfig config;
  config.vocab_size = 50257;
  config.bias = true;
  EXPECT_EQ(config.parameter_count(), 124439808);  // the released gpt2
  config = {};
  ASSERT_TRUE(ApplySetting({"init_from", "'gpt2-xl'"}, &config).ok());
  EXPECT_EQ(config.parameter_count(), 1557611200);
}

}  // namespace
}  // namespace memreplay::synth
