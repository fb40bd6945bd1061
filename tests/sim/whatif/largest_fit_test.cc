#include "sim/whatif/largest_fit.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

TEST(LargestFit, FindsEveryEdge) {
  for (int64_t edge = 0; edge <= 200; ++edge) {
    const LargestFit found = FindLargestFit(1000, [&](int64_t value) { return value <= edge; });
    EXPECT_EQ(found.largest.value_or(0), edge);
    EXPECT_EQ(found.safe.value_or(0), edge);
  }
}

TEST(LargestFit, StopsAtTheLimit) {
  for (const int64_t limit : {1, 2, 3, 100, 128, 129}) {
    const LargestFit found = FindLargestFit(limit, [](int64_t) { return true; });
    EXPECT_EQ(found.largest, limit);
    EXPECT_EQ(found.tried.rbegin()->first, limit);
  }
}

TEST(LargestFit, TriesNoValueTwice) {
  std::multiset<int64_t> asked;
  FindLargestFit(1 << 20, [&](int64_t value) {
    asked.insert(value);
    return value <= 777;
  });
  EXPECT_EQ(std::set<int64_t>(asked.begin(), asked.end()).size(), asked.size());
  EXPECT_LT(asked.size(), 40u);
}

TEST(LargestFit, FindsALargerOneBeyondAGapAndSaysSo) {
  // 8 does not fit, 9 does, as fragmentation has it.
  const LargestFit found =
      FindLargestFit(1000, [](int64_t value) { return value <= 9 && value != 8; });
  EXPECT_EQ(found.largest, 9);
  EXPECT_EQ(found.safe, 7);
}

TEST(LargestFit, NeverClaimsWhatWasNotTried) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::set<int64_t> fitting;
    for (int64_t value = 1; value <= 64; ++value) {
      if (random() % 64 >= static_cast<uint32_t>(value)) fitting.insert(value);
    }
    const LargestFit found =
        FindLargestFit(64, [&](int64_t value) { return fitting.count(value) > 0; });
    for (const auto& [value, fits] : found.tried) {
      EXPECT_EQ(fits, fitting.count(value) > 0);
      EXPECT_TRUE(fits || value > found.safe.value_or(0));
      EXPECT_TRUE(!fits || value <= found.largest.value_or(0));
    }
    EXPECT_TRUE(!found.largest.has_value() || found.tried.at(*found.largest));
  }
}

}  // namespace
}  // namespace memreplay
