#include "sim/workload/repetition.h"

#include <gtest/gtest.h>

#include <random>

namespace memreplay {
namespace {

using Tokens = std::vector<uint32_t>;

Repetition Find(const Tokens& tokens) {
  return FindRepetition(tokens, 10, std::vector<int64_t>(tokens.size()));
}

void Append(const Tokens& what, int times, Tokens* to) {
  for (int i = 0; i < times; ++i) to->insert(to->end(), what.begin(), what.end());
}

TEST(FindRepetition, NothingInTwoOfAKind) {
  EXPECT_EQ(Find({}).period, 0u);
  EXPECT_EQ(Find({1, 2, 3, 4, 1, 2, 3, 4}).period, 0u);
}

TEST(FindRepetition, BeginsWhereTheLevelIsLowest) {
  Tokens tokens;
  Append({1, 2, 3, 4}, 6, &tokens);
  std::vector<int64_t> level;
  for (size_t i = 0; i < tokens.size(); ++i) level.push_back(i % 4 == 2 ? 0 : 5);
  const Repetition found = FindRepetition(tokens, 10, level);
  EXPECT_EQ(found.period, 4u);
  EXPECT_EQ(found.begins, (std::vector<size_t>{2, 6, 10, 14, 18, 22}));
  EXPECT_EQ(found.agreement, 1);
}

// Five layers and a head, four times: the layers repeat too, but less well.
TEST(FindRepetition, PrefersTheLongerPeriodThatAgreesBetter) {
  Tokens step;
  Append({1, 2, 3}, 9, &step);
  Append({4, 5}, 1, &step);
  Tokens tokens;
  Append(step, 4, &tokens);
  EXPECT_EQ(Find(tokens).period, step.size());
}

TEST(FindRepetition, GoesOnBehindWhatInterrupts) {
  const Tokens step = {1, 2, 3, 4, 5, 6, 7, 8};
  Tokens tokens;
  Append(step, 5, &tokens);
  Append({9}, 30, &tokens);
  Append(step, 5, &tokens);
  const Repetition found = Find(tokens);
  EXPECT_EQ(found.period, 8u);
  EXPECT_EQ(found.begins, (std::vector<size_t>{0, 8, 16, 24, 32, 70, 78, 86, 94, 102, 110}));
  EXPECT_EQ(found.inside(), 80u);
}

TEST(FindRepetition, TakesARepeatWithSomethingMoreInIt) {
  const Tokens step = {1, 2, 3, 4, 5, 6, 7, 8};
  Tokens tokens;
  Append(step, 4, &tokens);
  Append({1, 2, 3, 9, 4, 5, 6, 7, 8}, 1, &tokens);
  Append(step, 1, &tokens);
  EXPECT_EQ(Find(tokens).begins, (std::vector<size_t>{0, 8, 16, 24, 32, 41, 49}));
}

// `times` times `length` tokens, of which some are others each time.
Tokens Noisy(size_t length, int times, unsigned changed_percent) {
  std::mt19937 random(1);
  Tokens step(length), tokens;
  for (uint32_t& token : step) token = random() % 1000;
  for (int i = 0; i < times; ++i) {
    for (const uint32_t token : step) {
      tokens.push_back(random() % 100 < changed_percent ? random() % 1000 : token);
    }
  }
  return tokens;
}

TEST(FindRepetition, FindsLongStepsOfWhichFewTokensDiffer) {
  for (const size_t length : {100, 1000, 5000}) {
    const Tokens tokens = Noisy(length, 12, 2);
    const Repetition found = FindRepetition(tokens, 1000, std::vector<int64_t>(tokens.size()));
    EXPECT_EQ(found.period, length);
    EXPECT_GE(found.ends.size(), 10u);
    EXPECT_NEAR(found.agreement, 0.96, 0.02);
  }
}

TEST(FindRepetition, FindsNothingWhereMoreThanAnEighthDiffers) {
  for (const size_t length : {100, 1000, 5000}) {
    const Tokens tokens = Noisy(length, 12, 20);
    EXPECT_EQ(FindRepetition(tokens, 1000, std::vector<int64_t>(tokens.size())).period, 0u);
  }
}

TEST(FindRepetition, DropsTheLastThatIsCutOff) {
  const Tokens step = {1, 2, 3, 4, 5, 6, 7, 8};
  Tokens tokens;
  Append(step, 5, &tokens);
  Append({1, 2, 3, 4, 5, 6, 7}, 1, &tokens);
  EXPECT_EQ(Find(tokens).begins, (std::vector<size_t>{0, 8, 16, 24, 32, 40}));
}

}  // namespace
}  // namespace memreplay
