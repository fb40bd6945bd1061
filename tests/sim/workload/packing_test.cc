#include "sim/workload/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace memreplay {
namespace {

Lifetime Life(uint32_t begin, uint32_t end, uint64_t units) {
  return {begin, end, Bytes(units * 512 - 100), Bytes(units * 512)};
}

// Checks independently: goes through the moments and keeps what is in use by offset, where
// neighbours must not overlap.
::testing::AssertionResult IsValid(const std::vector<Lifetime>& lifetimes, const Packing& packing) {
  if (packing.offset.size() != lifetimes.size()) {
    return ::testing::AssertionFailure() << packing.offset.size() << " offsets";
  }
  struct Change {
    uint32_t moment;
    bool begins;  // ends come first
    size_t item;
  };
  std::vector<Change> changes;
  uint64_t height = 0;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    changes.push_back({lifetimes[i].begin, true, i});
    changes.push_back({lifetimes[i].end, false, i});
    height = std::max(height, packing.offset[i] + lifetimes[i].rounded.value());
  }
  if (height != packing.height.value()) {
    return ::testing::AssertionFailure()
           << "height " << height << " is told as " << packing.height.value();
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.moment != b.moment ? a.moment < b.moment : a.begins < b.begins;
  });
  std::map<uint64_t, uint64_t> used;  // from -> to
  for (const Change& change : changes) {
    const uint64_t from = packing.offset[change.item];
    if (!change.begins) {
      used.erase(from);
      continue;
    }
    const uint64_t to = from + lifetimes[change.item].rounded.value();
    const auto next = used.lower_bound(from);
    if ((next != used.end() && next->first < to) ||
        (next != used.begin() && std::prev(next)->second > from)) {
      return ::testing::AssertionFailure()
             << "item " << change.item << " at " << from << " overlaps at moment " << change.moment;
    }
    used[from] = to;
  }
  return ::testing::AssertionSuccess();
}

std::vector<Lifetime> RandomLifetimes(std::mt19937& random, size_t count, uint32_t moments) {
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<uint32_t>(random() % moments);
    const auto length = static_cast<uint32_t>(1 + random() % (random() % 4 == 0 ? moments : 9));
    lifetimes.push_back(Life(begin, begin + length, 1 + random() % (random() % 3 == 0 ? 900 : 9)));
  }
  std::sort(lifetimes.begin(), lifetimes.end(),
            [](const Lifetime& a, const Lifetime& b) { return a.begin < b.begin; });
  return lifetimes;
}

TEST(BestPacking, NothingNeedsNothing) { EXPECT_EQ(BestPacking({}).height, Bytes(0)); }

TEST(BestPacking, ReusesWhatIsOver) {
  const std::vector<Lifetime> lifetimes = {Life(0, 2, 10), Life(1, 4, 5), Life(2, 4, 10)};
  const Packing packing = BestPacking(lifetimes);
  EXPECT_TRUE(IsValid(lifetimes, packing));
  EXPECT_EQ(packing.height, Bytes(15 * 512));
}

// In the order of arrival, 1 lies low, 2 above it, and when 1 is gone, 3 does not fit below 2. With
// that known, the long-lived 2 goes to the bottom.
TEST(BestPacking, ForesightIsBetterThanPlacingAsTheyCome) {
  const std::vector<Lifetime> lifetimes = {Life(0, 2, 10), Life(1, 9, 2), Life(2, 9, 11)};
  const Packing packing = BestPacking(lifetimes);
  EXPECT_TRUE(IsValid(lifetimes, packing));
  EXPECT_EQ(packing.height, PeakLiveOf(lifetimes).rounded);
  EXPECT_NE(packing.heuristic, "in order of arrival, best fit");
}

TEST(BestPacking, IsValidAndNotBelowThePeakOnRandomLifetimes) {
  std::mt19937 random(20);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Lifetime> lifetimes = RandomLifetimes(random, 1 + random() % 150, 60);
    for (const uint64_t budget : {uint64_t{4'000'000}, uint64_t{100}, uint64_t{0}}) {
      const Packing packing = BestPacking(lifetimes, {.pair_budget = budget});
      ASSERT_TRUE(IsValid(lifetimes, packing)) << "round " << round << ", budget " << budget;
      ASSERT_GE(packing.height, PeakLiveOf(lifetimes).rounded);
    }
  }
}

TEST(BestPacking, ABudgetBoundsTheWork) {
  std::mt19937 random(21);
  const std::vector<Lifetime> lifetimes = RandomLifetimes(random, 50000, 50000);
  const Packing packing = BestPacking(lifetimes, {.pair_budget = 200'000});
  EXPECT_TRUE(IsValid(lifetimes, packing));
  EXPECT_GE(packing.height, PeakLiveOf(lifetimes).rounded);
}

TEST(PeakLiveOf, CountsWhatIsInUseAtOnce) {
  const std::vector<Lifetime> lifetimes = {Life(0, 3, 4), Life(1, 2, 8), Life(2, 3, 7)};
  EXPECT_EQ(PeakLiveOf(lifetimes).rounded, Bytes(12 * 512));
  EXPECT_EQ(PeakLiveOf(lifetimes).requested, Bytes(12 * 512 - 200));
}

}  // namespace
}  // namespace memreplay
