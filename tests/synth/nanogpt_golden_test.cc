// Compares nanoGPT's schedule with walks that were made independently, event by event, except for
// workspaces and single numbers, of which tests/record has what PyTorch's own code does. The walks
// are no part of this project: MEMREPLAY_SHARED names the folder that holds data/golden. This file
// keeps what they amount to (a digest of every size, order and lifetime, and the peaks), so that
// the proof stands without them.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "synth/nanogpt.h"
#include "tests/trace/support/program_digest.h"
#include "trace/formats/open_trace.h"

namespace memreplay::synth {
namespace {

struct Golden {
  const char* name;
  const char* settings;  // key=value, separated by spaces
  int64_t parameters;
  size_t events;            // allocations, frees and phases, workspaces included
  uint64_t digest;          // of the walk, but for those that PyTorch has otherwise
  uint64_t peak_allocated;  // bytes, of the whole run
  // As tests/record shows PyTorch: it adds a second gradient in place neither to one that Python's
  // checkpoint() holds nor to a tied head's in fp32; softmax's backward has a temporary, and masks
  // come with their layer's weights.
  bool differs = false;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

constexpr Golden kGolden[] = {
    {"seedA_fp16_flash",
     "n_layer=6 n_head=6 n_embd=384 block_size=512 batch_size=16 gradient_accumulation_steps=4 "
     "compile=False dtype=float16",
     30135168, 7460, 3519843959406964730u, 6204826624},
    {"seedA_fp16_manual",
     "n_layer=6 n_head=6 n_embd=384 block_size=512 batch_size=16 gradient_accumulation_steps=2 "
     "compile=False dtype=float16 attention=manual",
     30135168, 6194, 13148847706339120324u, 7117480960, true},
    {"seedA_fp32",
     "n_layer=6 n_head=6 n_embd=384 block_size=512 batch_size=16 gradient_accumulation_steps=2 "
     "compile=False dtype=float32",
     30135168, 3570, 4729791319685417484u, 8328026624, true},
    {"seedA_ckpt",
     "n_layer=6 n_head=6 n_embd=384 block_size=512 batch_size=16 gradient_accumulation_steps=2 "
     "compile=False dtype=float16 checkpoint=block",
     30135168, 5828, 14093768972264461191u, 5577647104, true},
    {"seedB_fp16_flash",
     "n_layer=12 n_head=12 n_embd=576 block_size=1024 batch_size=16 gradient_accumulation_steps=2 "
     "compile=False dtype=float16",
     77355072, 8876, 2644291875224181818u, 15445191680},
    {"gpt2_124M_bf16",
     "n_layer=12 n_head=12 n_embd=768 block_size=1024 batch_size=12 gradient_accumulation_steps=2 "
     "compile=False dtype=bfloat16",
     124373760, 8830, 16437353590228498429u, 13815246336},
    {"tiny_char",
     "n_layer=6 n_head=6 n_embd=384 block_size=256 batch_size=64 gradient_accumulation_steps=1 "
     "compile=False dtype=bfloat16 vocab_size=65 dropout=0.2",
     10745088, 3546, 6862096800115557370u, 1711479808},
};

NanoGptConfig Config(const Golden& golden) {
  NanoGptConfig config;
  std::istringstream words(golden.settings);
  std::string word;
  while (words >> word) {
    const size_t equals = word.find('=');
    const absl::Status applied =
        ApplySetting({word.substr(0, equals), word.substr(equals + 1)}, &config);
    EXPECT_TRUE(applied.ok()) << applied;
  }
  return config;
}

Trace Generate(const Golden& golden) {
  absl::StatusOr<Trace> program = Program(Config(golden));
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

class NanoGptGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(NanoGptGolden, HasTheDigestAndThePeak) {
  const Golden& golden = GetParam();
  const Trace program = Generate(golden);
  EXPECT_EQ(Config(golden).parameter_count(), golden.parameters);
  const std::vector<std::string> lines = VisibleInstants(program);
  EXPECT_EQ(Digest(lines), golden.digest);
  uint64_t peak = 0;
  for (const auto& [phase, bytes] : PhasePeaks(program)) peak = std::max(peak, bytes);
  EXPECT_EQ(peak, golden.peak_allocated);
  size_t events = 0;
  for (const Event& event : program.devices[0].events) {
    events += event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
              event.is_mark(MarkKind::kPhase);
  }
  EXPECT_EQ(events, golden.events);
}

TEST_P(NanoGptGolden, EqualsTheWalkEventByEvent) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no walks here";
  const std::string folder = std::string(shared) + "/data/golden/";
  const absl::StatusOr<Trace> walk = OpenTrace(folder + GetParam().name + ".jsonl");
  ASSERT_TRUE(walk.ok()) << walk.status();
  const std::vector<std::string> expected = VisibleInstants(*walk);
  const std::vector<std::string> found = VisibleInstants(Generate(GetParam()));
  if (GetParam().differs) {
    EXPECT_NE(found, expected) << "this walk is as PyTorch does again";
    return;
  }
  std::string phase;
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    if (expected[i][0] == 'P') phase = expected[i];
    ASSERT_EQ(found[i], expected[i]) << "instant " << i << " in " << phase;
  }
  EXPECT_EQ(found.size(), expected.size());
}

TEST_P(NanoGptGolden, HasTheWalksPeakInEveryPhase) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no walks here";
  std::ifstream file(std::string(shared) + "/data/golden/expected.json");
  std::stringstream text;
  text << file.rdbuf();
  // "name": {... "peak_allocated": {"phase": bytes, ...} ...}
  const std::string all = text.str();
  const size_t entry = all.find("\"" + std::string(GetParam().name) + "\"");
  ASSERT_NE(entry, std::string::npos);
  const size_t begin = all.find('{', all.find("\"peak_allocated\"", entry));
  std::istringstream peaks(all.substr(begin + 1, all.find('}', begin) - begin - 1));
  std::map<std::string, uint64_t> expected;
  for (std::string pair; std::getline(peaks, pair, ',');) {
    const size_t open = pair.find('"');
    const size_t close = pair.find('"', open + 1);
    expected[pair.substr(open + 1, close - open - 1)] =
        std::stoull(pair.substr(pair.find(':', close) + 1));
  }
  // Numbers and sorting's scratch, of which the walks know less.
  constexpr uint64_t kScratch = 8192;
  const std::vector<std::pair<std::string, uint64_t>> found = PhasePeaks(Generate(GetParam()));
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [phase, bytes] : found) {
    EXPECT_LE(bytes, expected.at(phase) + kScratch) << phase;
    EXPECT_GE(bytes + kScratch, expected.at(phase)) << phase;
  }
}

INSTANTIATE_TEST_SUITE_P(Walks, NanoGptGolden, ::testing::ValuesIn(kGolden),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

}  // namespace
}  // namespace memreplay::synth
