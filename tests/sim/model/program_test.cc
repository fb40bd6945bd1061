// Runs random schedules on the caching allocator, with independent checks after every step. A
// failure prints the shortest failing schedule as flat JSON lines; put it in a file and `memreplay
// replay` runs it.
//
//   MEMREPLAY_PROGRAM_SEEDS=n   seeds per mix (default 6)
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "sim/model/rule.h"
#include "sim/settings/torch_profile.h"
#include "tests/sim/support/program_generator.h"
#include "tests/sim/support/program_runner.h"

namespace memreplay {
namespace {

constexpr int kSteps = 300;

uint64_t Seeds() {
  uint64_t seeds = 6;
  if (const char* text = std::getenv("MEMREPLAY_PROGRAM_SEEDS"); text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seeds)) << text;
  }
  return seeds;
}

// The rules differ by release: the seeds take turns.
const TorchProfile& ReleaseOf(uint64_t seed) {
  constexpr const char* kReleases[] = {"2.15", "2.11", "2.11"};
  return **FindTorchProfile(kReleases[seed % 3]);
}

// Returns the outcomes of a mix's schedules, by seed from 1. Each runs once per process.
const std::vector<ProgramOutcome>& Outcomes(Mix mix) {
  static auto& outcomes = *new std::map<Mix, std::vector<ProgramOutcome>>();
  std::vector<ProgramOutcome>& of_mix = outcomes[mix];
  while (of_mix.size() < Seeds()) {
    const uint64_t seed = of_mix.size() + 1;
    of_mix.push_back(RunProgramIsolated(GenerateProgram(mix, seed, kSteps), ReleaseOf(seed)));
  }
  return of_mix;
}

class ProgramTest : public testing::TestWithParam<Mix> {};

TEST_P(ProgramTest, HoldsAfterEveryStep) {
  uint64_t events = 0, ooms = 0;
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    const ProgramOutcome& outcome = Outcomes(GetParam())[seed - 1];
    events += outcome.events;
    ooms += outcome.ooms;
    if (outcome.failure.empty()) continue;
    const Program program = GenerateProgram(GetParam(), seed, kSteps);
    const Program shortest = ShrinkProgram(program, [seed](const Program& candidate) {
      return !RunProgramIsolated(candidate, ReleaseOf(seed)).failure.empty();
    });
    FAIL() << MixName(GetParam()) << " seed " << seed << ": " << outcome.failure
           << "\nshortest program that fails ("
           << RunProgramIsolated(shortest, ReleaseOf(seed)).failure << "):\n"
           << ProgramText(shortest);
  }
  EXPECT_GT(events, Seeds() * kSteps / 3);
  if (GetParam() == Mix::kPressure) {
    EXPECT_GT(ooms, 0u);
  }
}

std::vector<Mix> AllMixes() {
  std::vector<Mix> mixes;
  for (int i = 0; i < static_cast<int>(Mix::kCount); ++i) mixes.push_back(static_cast<Mix>(i));
  return mixes;
}
INSTANTIATE_TEST_SUITE_P(Mixes, ProgramTest, testing::ValuesIn(AllMixes()),
                         [](const auto& mix) { return std::string(MixName(mix.param)); });

// Every release's rules hold together; each release has programs of its own, of
// a third of the mixes.
TEST(ReleaseTest, HoldsUnderEveryRelease) {
  uint64_t seed = 1000;
  for (const TorchProfile& profile : AllTorchProfiles()) {
    if (!profile.expandable_segments) continue;  // the programs' settings are unknown to it
    for (const Mix mix : AllMixes()) {
      if (++seed % 3 != 0) continue;
      const Program program = GenerateProgram(mix, seed, kSteps / 3);
      const auto run = [&](const Program& candidate) {
        return RunProgramIsolated(candidate, profile).failure;
      };
      const std::string failure = run(program);
      if (failure.empty()) continue;
      const Program shortest =
          ShrinkProgram(program, [&](const Program& candidate) { return !run(candidate).empty(); });
      ADD_FAILURE() << profile.release << ", " << MixName(mix) << " seed " << seed << ": "
                    << failure << "\nshortest program that fails (" << run(shortest) << "):\n"
                    << ProgramText(shortest);
    }
  }
}

// The mixes together reach the rules of the allocator: each that is not listed
// here fires at least once.
TEST(ProgramCoverageTest, EveryRuleFires) {
  const std::set<Rule> not_reached = {
      Rule::kRejectedEarly,  // by a key that GenerateProgram() does not give
  };
  RuleCounts total = {};
  for (const Mix mix : AllMixes()) {
    for (const ProgramOutcome& outcome : Outcomes(mix)) {
      for (size_t rule = 0; rule < kRuleCount; ++rule) total[rule] += outcome.rules[rule];
    }
  }
  for (size_t rule = 0; rule < kRuleCount; ++rule) {
    RecordProperty(std::string(kRuleNames[rule]), std::to_string(total[rule]));
    if (not_reached.count(static_cast<Rule>(rule)) != 0) continue;
    EXPECT_GT(total[rule], 0u) << kRuleNames[rule];
  }
}

// A known defect is found and cut down to its core.
TEST(ShrinkTest, LeavesWhatMatters) {
  const Program program = GenerateProgram(Mix::kPressure, 1, kSteps);
  const auto fails = [](const Program& candidate) {
    uint64_t large = 0;
    for (const Step& step : candidate.steps) {
      large += step.kind == EventKind::kAlloc && step.size > 5 << 20;
    }
    return large >= 2;
  };
  ASSERT_TRUE(fails(program));
  const Program shortest = ShrinkProgram(program, fails);
  EXPECT_EQ(shortest.steps.size(), 2u);
  EXPECT_EQ(shortest.steps[0].size, uint64_t{20} << 20);
  EXPECT_EQ(shortest.conf, "");
}

TEST(GeneratorTest, SameSeedSameProgram) {
  for (const Mix mix : AllMixes()) {
    const std::string text = ProgramText(GenerateProgram(mix, 3, 100));
    EXPECT_EQ(text, ProgramText(GenerateProgram(mix, 3, 100)));
    EXPECT_NE(text, ProgramText(GenerateProgram(mix, 4, 100)));
  }
}

}  // namespace
}  // namespace memreplay
