#include "trace/program/counter_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace memreplay::program {
namespace {

// The published numbers of splitmix64 for the seed 1234567.
TEST(CounterRandom, IsSplitmix64) {
  CounterRandom random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(CounterRandom, BetweenReachesBothEndsAndNothingElse) {
  CounterRandom random(1);
  std::vector<int> seen(4);
  for (int i = 0; i < 4000; ++i) {
    const int64_t value = random.Between(-1, 2);
    ASSERT_GE(value, -1);
    ASSERT_LE(value, 2);
    ++seen[static_cast<size_t>(value + 1)];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Between(5, 5), 5);
  random.Between(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

TEST(CounterRandom, WeightedLeavesOutWhatHasNoWeight) {
  CounterRandom random(2);
  std::vector<int> seen(4);
  const std::vector<double> weights = {0, 3, 1, 0};
  for (int i = 0; i < 4000; ++i) ++seen[random.Weighted(weights)];
  EXPECT_EQ(seen[0] + seen[3], 0);
  EXPECT_NEAR(seen[1], 3000, 150);
}

Draw Make(Draw::Kind kind, int64_t min, int64_t max) {
  Draw draw;
  draw.kind = kind;
  draw.min = min;
  draw.max = max;
  return draw;
}

TEST(DrawFrom, HasTheMeanThatItShould) {
  CounterRandom random(3);
  const int n = 20000;
  double uniform = 0, loguniform = 0, lognormal = 0, geometric = 0;
  Draw normal = Make(Draw::Kind::kLogNormal, 1, INT64_MAX);
  normal.mu = 6;
  normal.sigma = 0.5;
  Draw trials = Make(Draw::Kind::kGeometric, 1, INT64_MAX);
  trials.mean = 200;
  for (int i = 0; i < n; ++i) {
    uniform += static_cast<double>(DrawFrom(Make(Draw::Kind::kUniform, 100, 300), random));
    loguniform += std::log(
        static_cast<double>(DrawFrom(Make(Draw::Kind::kLogUniform, 512, 1 << 20), random)));
    lognormal += std::log(static_cast<double>(DrawFrom(normal, random)));
    geometric += static_cast<double>(DrawFrom(trials, random));
  }
  EXPECT_NEAR(uniform / n, 200, 2);
  EXPECT_NEAR(loguniform / n, (std::log(512) + std::log(1 << 20)) / 2, 0.05);
  EXPECT_NEAR(lognormal / n, 6, 0.02);
  EXPECT_NEAR(geometric / n, 200, 5);
}

TEST(DrawFrom, RoundsUpAndStaysWithin) {
  CounterRandom random(4);
  Draw draw = Make(Draw::Kind::kLogUniform, 16, 1000);
  draw.round = 8;
  for (int i = 0; i < 2000; ++i) {
    const int64_t value = DrawFrom(draw, random);
    EXPECT_GE(value, 16);
    EXPECT_LE(value, 1000);
    EXPECT_EQ(value % 8, 0);
  }
  EXPECT_EQ(RoundAndLimit(draw, 17), 24);
  EXPECT_EQ(RoundAndLimit(draw, INT64_MAX), 1000);
}

}  // namespace
}  // namespace memreplay::program
