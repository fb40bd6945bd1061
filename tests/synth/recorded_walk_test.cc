// Compares the generator with PyTorch itself: small runs recorded by walks/record.py, event by
// event, except for workspaces, which a recording without a GPU cannot show.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "synth/models.h"
#include "tests/trace/support/program_digest.h"
#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

struct Walk {
  std::string model;
  std::vector<Setting> settings;
  std::vector<std::string> lines;  // as Instants() has them
};

Walk ReadWalk(const std::string& name) {
  std::ifstream file("tests/data/walks/" + name + ".txt");
  EXPECT_TRUE(file.good()) << name;
  Walk walk;
  // "# torch 2.6: model=llama n_layers=2 ..."
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(line.find(':') + 1));
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const Setting setting = {word.substr(0, equals), word.substr(equals + 1)};
    if (setting.key == "model") {
      walk.model = setting.value;
    } else {
      walk.settings.push_back(setting);
    }
  }
  while (std::getline(file, line)) {
    if (line[0] == 'P') {
      walk.lines.push_back(line);
      continue;
    }
    std::istringstream numbers(line);
    for (std::string number; numbers >> number;) {
      if (number[0] != '-') {
        walk.lines.push_back("A " + number);
        continue;
      }
      if (walk.lines.back()[0] != 'F') walk.lines.push_back("F");
      StrAppend(&walk.lines.back(), " ", number.substr(1));
    }
  }
  return walk;
}

// The walk's trainer does no evaluation before the first iteration, and no clipping.
std::vector<std::string> Generate(const Walk& walk) {
  std::vector<Setting> settings = walk.settings;
  for (const auto& [key, value] :
       {std::pair{"compile", "False"}, {"eval_first", "False"}, {"grad_clip", "0"}}) {
    settings.push_back({key, value});
  }
  const absl::StatusOr<TrainingRun> run = FindModel(walk.model)->make(settings);
  EXPECT_TRUE(run.ok()) << run.status();
  return VisibleInstants(run->program);
}

class RecordedWalk : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedWalk, IsWhatTheGeneratorWrites) {
  const Walk walk = ReadWalk(GetParam());
  const std::vector<std::string> found = Generate(walk);
  std::string phase;
  for (size_t i = 0; i < std::min(walk.lines.size(), found.size()); ++i) {
    if (found[i][0] == 'P') phase = found[i];
    ASSERT_EQ(found[i], walk.lines[i]) << "instant " << i << " in " << phase;
  }
  EXPECT_EQ(found.size(), walk.lines.size());
  EXPECT_GT(found.size(), 500u);
}

INSTANTIATE_TEST_SUITE_P(Exact, RecordedWalk,
                         ::testing::Values("llama_bf16", "llama_tied", "llama_all_heads",
                                           "llama_one_kv_head", "llama_fp32", "llama_upcast",
                                           "llama_fused_norm", "llama_checkpoint", "nanogpt_bf16",
                                           "nanogpt_dropout", "nanogpt_checkpoint",
                                           "nanogpt_fp32"));

}  // namespace
}  // namespace memreplay::synth
