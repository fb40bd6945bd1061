#include <random>
#include <set>

#include "gtest/gtest.h"
#include "sim/whatif/smallest_capacity.h"

namespace memreplay {
namespace {

constexpr uint64_t kPlenty = 1 << 20;

FitOutcome TryOutcome(bool fits) { return fits ? FitOutcome::kFits : FitOutcome::kRunsOut; }

TEST(LargestFit, FindsEveryEdge) {
  for (int64_t edge = 0; edge <= 200; ++edge) {
    const LargestFit found =
        FindLargestFit(1000, kPlenty, [&](int64_t value) { return TryOutcome(value <= edge); });
    EXPECT_EQ(found.largest.value_or(0), edge);
    EXPECT_EQ(found.safe.value_or(0), edge);
    EXPECT_TRUE(found.safe_is_proven);
    EXPECT_TRUE(found.largest_is_proven);
  }
}

TEST(LargestFit, StopsAtTheLimit) {
  for (const int64_t limit : {1, 2, 3, 100, 128, 129}) {
    const LargestFit found =
        FindLargestFit(limit, kPlenty, [](int64_t) { return FitOutcome::kFits; });
    EXPECT_EQ(found.largest, limit);
    EXPECT_EQ(found.tried.rbegin()->first, limit);
  }
}

TEST(LargestFit, TriesNoValueTwiceAndNoMoreThanItMay) {
  std::multiset<int64_t> asked;
  const LargestFit found = FindLargestFit(1 << 20, 60, [&](int64_t value) {
    asked.insert(value);
    return TryOutcome(value <= 777);
  });
  EXPECT_EQ(std::set<int64_t>(asked.begin(), asked.end()).size(), asked.size());
  EXPECT_EQ(asked.size(), 60u);
  EXPECT_EQ(found.safe, 777);
  EXPECT_FALSE(found.safe_is_proven);
  EXPECT_FALSE(found.largest_is_proven);
}

TEST(LargestFit, EndsWhereNoAllocatorWouldDo) {
  int64_t highest = 0;
  const LargestFit found = FindLargestFit(1 << 20, kPlenty, [&](int64_t value) {
    highest = std::max(highest, value);
    return value > 40 ? FitOutcome::kNever : TryOutcome(value <= 30 || value == 38);
  });
  EXPECT_EQ(found.safe, 30);
  EXPECT_EQ(found.largest, 38);
  EXPECT_TRUE(found.safe_is_proven);
  EXPECT_TRUE(found.largest_is_proven);
  EXPECT_EQ(highest, 41);
}

// Because of fragmentation, 8 does not fit and 100 does: far from the edge that bisection finds.
TEST(LargestFit, FindsGapsFarFromTheEdge) {
  const LargestFit found = FindLargestFit(
      1000, kPlenty, [](int64_t value) { return TryOutcome(value <= 100 && value != 9); });
  EXPECT_EQ(found.largest, 100);
  EXPECT_EQ(found.safe, 8);
  EXPECT_TRUE(found.safe_is_proven);
}

TEST(LargestFit, AValueWithoutARunIsNoGap) {
  const LargestFit found = FindLargestFit(100, kPlenty, [](int64_t value) {
    return value == 3 ? FitOutcome::kNoValue : TryOutcome(value <= 20);
  });
  EXPECT_EQ(found.safe, 20);
}

// The search ends wherever its caller has had enough, and claims no more than was tried.
TEST(LargestFit, ClaimsNothingAboutWhatWasNotTried) {
  for (size_t enough = 0; enough < 40; ++enough) {
    size_t asked = 0;
    const LargestFit found = FindLargestFit(1 << 20, kPlenty, [&](int64_t value) {
      return ++asked > enough ? FitOutcome::kUntried : TryOutcome(value <= 777);
    });
    EXPECT_EQ(found.tried.size(), enough);
    EXPECT_LE(asked, enough + 13);  // doubling, what is left of the bisection, above, below
    EXPECT_EQ(found.largest.has_value(), enough > 0);
    EXPECT_LE(found.largest.value_or(0), 777);
    EXPECT_FALSE(found.safe_is_proven) << enough;
    EXPECT_FALSE(found.largest_is_proven) << enough;
  }
}

TEST(LargestFit, IsExactWhereItSaysSo) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::set<int64_t> fitting;
    for (int64_t value = 1; value <= 64; ++value) {
      if (random() % 64 >= static_cast<uint32_t>(value)) fitting.insert(value);
    }
    int64_t safe = 0;
    while (fitting.count(safe + 1) > 0) ++safe;
    const LargestFit found = FindLargestFit(
        64, kPlenty, [&](int64_t value) { return TryOutcome(fitting.count(value) > 0); });
    EXPECT_TRUE(found.safe_is_proven);
    EXPECT_TRUE(found.largest_is_proven);
    EXPECT_EQ(found.safe.value_or(0), safe);
    EXPECT_EQ(found.largest.value_or(0), fitting.empty() ? 0 : *fitting.rbegin());
  }
}

}  // namespace
}  // namespace memreplay
