// Tests the Llama-like model's schedule: closed forms of its peak, and its configuration.
#include "synth/llama.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trace/support/program_digest.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

constexpr double kWorkspace = 8519680;

// A configuration in which the logits are most of the peak.
LlamaConfig RandomConfig(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  LlamaConfig config;
  config.n_layers = pick(1, 5);
  config.n_kv_heads = pick(1, 3);
  config.n_heads = config.n_kv_heads * pick(2, 3);
  config.dim = config.n_heads * 32 * pick(1, 2);
  config.ffn_dim = 32 * pick(4, 32);
  config.seq_len = 128 * pick(3, 8);
  config.batch_size = pick(10, 24);
  config.vocab_size = 64 * pick(600, 1200);
  config.gradient_accumulation_steps = 2;
  config.tie_weights = pick(0, 1) == 1;
  return config;
}

struct Dimensions {
  explicit Dimensions(const LlamaConfig& c)
      : n(double(c.parameter_count())),
        l(double(c.n_layers)),
        bt(double(c.batch_size * c.seq_len)),
        btc(bt * double(c.dim)),
        btf(bt * double(c.hidden_dim())),
        // A key (or value) for each head; of one head alone it is a view of the one.
        btk(bt * double(c.kv_heads() == 1 ? c.head_dim() : c.dim)),
        bht(bt * double(c.n_heads)),
        e(bt * double(c.vocab_size)),
        // All with two dimensions but the embedding, which a tied head is too.
        n_mm(n - double(c.dim) * (2 * l + 1) - (c.tie_weights ? 0 : double(c.vocab_size * c.dim))),
        angles(4 * double(c.seq_len * c.head_dim())) {}
  double n, l, bt, btc, btf, btk, bht, e, n_mm, angles;
};

void ExpectPeak(const LlamaConfig& config, double expected) {
  const absl::StatusOr<Trace> program = Program(config);
  ASSERT_TRUE(program.ok()) << program.status();
  double found = 0;
  for (const auto& [phase, bytes] : PhasePeaks(*program)) {
    if (phase == "it1.bwd1") found = double(bytes);
  }
  // Blocks are rounded to 512 bytes, which the formulas leave out.
  EXPECT_NEAR(found / expected, 1, 2e-4) << ProgramHeader(config, "llama");
}

TEST(LlamaClosedForm, AmpFlash) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    LlamaConfig config = RandomConfig(random);
    config.rms_norm = i % 2 == 0 ? "eager" : "fused";
    const Dimensions d(config);
    // Per layer: two norms' input and (op by op) what it is scaled to, fp32; their
    // result cast for each of five projections; q, k, v as turned and repeated; the
    // attention's result; four of SwiGLU's; a root and a log-sum per row.
    const double norm = config.rms_norm == "eager" ? 8 : 4;
    ExpectPeak(config,
               16 * d.n + 2 * d.n_mm + d.angles +
                   d.l * ((2 * norm + 14) * d.btc + 4 * d.btk + 8 * d.btf + 4 * d.bht + 8 * d.bt) +
                   (norm + 2) * d.btc + 4 * d.bt + 12 * d.e + 32 * d.bt + 2 * kWorkspace);
  }
}

TEST(LlamaClosedForm, Fp32Efficient) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    LlamaConfig config = RandomConfig(random);
    config.dtype = "float32";
    const Dimensions d(config);
    ExpectPeak(config, 16 * d.n + d.angles +
                           d.l * (32 * d.btc + 8 * d.btk + 16 * d.btf + 4 * d.bht + 8 * d.bt) +
                           12 * d.btc + 4 * d.bt + 16 * d.e + 32 * d.bt + 2 * kWorkspace);
  }
}

TEST(LlamaConfig, CountsTheParametersOfReleasedModels) {
  const std::map<std::string, int64_t> expected = {{"llama-2-7b", 6738415616},
                                                   {"llama-2-13b", 13015864320},
                                                   {"llama-3-8b", 8030261248},
                                                   {"llama-3.2-1b", 1235814400},
                                                   {"llama-3.2-3b", 3212749824}};
  for (const auto& [preset, count] : expected) {
    LlamaConfig config;
    ASSERT_TRUE(ApplySetting({"preset", preset}, &config).ok());
    EXPECT_EQ(config.parameter_count(), count) << preset;
    EXPECT_EQ(Validate(config), absl::OkStatus());
  }
}

TEST(LlamaConfig, WidthOfTheFeedForwardPart) {
  LlamaConfig config;  // of 7B
  EXPECT_EQ(config.hidden_dim(), 11008);
  config.ffn_dim_multiplier = 1.3;
  config.multiple_of = 1024;
  EXPECT_EQ(config.hidden_dim(), 14336);  // as in the 8B
  config.ffn_dim = 100;
  EXPECT_EQ(config.hidden_dim(), 100);
}

TEST(LlamaConfig, NormsAreOneKernelFromTwoPointEightOn) {
  LlamaConfig config;
  for (const auto& [release, fused] : std::map<std::string, bool>{
           {"1.13", false}, {"2.6", false}, {"2.7.1", false}, {"2.8", true}, {"2.15", true}}) {
    config.torch_version = release;
    EXPECT_EQ(config.fused_norm(), fused) << release;
  }
}

std::string Refusal(const std::vector<Setting>& settings) {
  LlamaConfig config;
  for (const Setting& setting : settings) {
    const absl::Status applied = ApplySetting(setting, &config);
    if (!applied.ok()) return std::string(applied.message());
  }
  return std::string(Validate(config).message());
}

TEST(LlamaConfig, RefusesWhatCannotBe) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal({{"dim", "100"}, {"n_heads", "3"}}), "dim 100 is not divisible by n_heads 3");
  EXPECT_EQ(
      Refusal({{"dim", "96"}, {"n_heads", "32"}}),
      "dim / n_heads is 3: rotary embedding rotates pairs of channels and requires an even number");
  EXPECT_EQ(Refusal({{"n_kv_heads", "5"}}),
            "n_heads 32 is not divisible by n_kv_heads 5: every key and value head serves the same "
            "number of heads");
  EXPECT_EQ(Refusal({{"compile", "True"}}), "compile=True is modelled for nanogpt only");
  EXPECT_EQ(Refusal({{"hidden_size", "64"}}), "llama has no key hidden_size: called dim here");
  EXPECT_EQ(Refusal({{"experts", "8"}}),
            "llama has no key experts; memreplay synth llama --help lists them");
  for (const char* found : {"-1", "1025", "2147483648", "9223372036854775807"}) {
    EXPECT_EQ(Refusal({{"multiprocessors", found}}),
              std::string("multiprocessors: expected 0 to 1024, found ") + found);
  }
  for (const char* found :
       {"", "nan", "8", "8.", ".9", "-8.9", "4.9", "20.0", "8.90", "0x8.9", "9"}) {
    EXPECT_EQ(
        Refusal({{"compute_capability", found}}),
        std::string("compute_capability: expected one from 5.0 to 19.9, such as 8.9, found '") +
            found + "'");
  }
  EXPECT_EQ(Refusal({{"compute_capability", "'10.3'"}, {"multiprocessors", "1024"}}), "");
  EXPECT_NE(Refusal({{"n_layers", "4096"}}).find("events would have to be written"),
            std::string::npos);
  EXPECT_EQ(Refusal({{"seq_len", "0"}}), "seq_len: expected 1 to 16777216, found 0");
  EXPECT_NE(Refusal({{"vocab_size", "16777216"}, {"batch_size", "1048576"}}), "");
}

}  // namespace
}  // namespace memreplay::synth
