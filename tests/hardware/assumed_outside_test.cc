#include <gtest/gtest.h>

#include "hardware/cards.h"
#include "hardware/outside_figures.h"

namespace memreplay {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

TEST(AssumeOutsideTest, FollowsFromTheMultiprocessors) {
  EXPECT_EQ(AssumeOutside(132).bytes, 132 * kOutsidePerMultiprocessor.high);
  EXPECT_GT(AssumeOutside(132).bytes, 132 * kOutsidePerMultiprocessor.median);
  EXPECT_EQ(AssumeOutside(132).reason,
            "4.77 MiB for each of 132 multiprocessors: 90 % of 24 public reports have no more");
  EXPECT_EQ(AssumeOutside(132).bytes / kMebi, 630) << "132 x 4.77 MiB = 629.6 MiB";
}

TEST(AssumeOutsideTest, ASmallGpuIsTakenForTheSmallestOfTheReports) {
  EXPECT_EQ(AssumeOutside(6).bytes, AssumeOutside(kFewestMultiprocessors).bytes);
  EXPECT_EQ(AssumeOutside(6).reason,
            "4.77 MiB for each of 40 multiprocessors, the fewest in public reports: 90 % of 24 "
            "public reports have no more");
}

TEST(AssumeOutsideTest, WithoutAGpuThereIsOneFigure) {
  EXPECT_EQ(AssumeOutside(0).bytes, 500 * kMebi);
  EXPECT_EQ(AssumeOutside(0).reason, "no GPU is named; 20 of 33 public reports have no more");
}

TEST(AssumeOutsideTest, EveryCardOfTheTableHasMostOfItsMemoryLeft) {
  for (const Card& card : AllCards()) {
    ASSERT_GT(card.multiprocessors, 0) << card.name;
    EXPECT_LT(static_cast<uint64_t>(AssumeOutside(card.multiprocessors).bytes), card.memory / 8)
        << card.name;
  }
}

}  // namespace
}  // namespace memreplay
