#include "trace/value/bounded.h"

#include <gtest/gtest.h>

#include <limits>

namespace memreplay {
namespace {

constexpr int64_t kBound = int64_t{1} << 61;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(BoundedSum, NeverOverflows) {
  EXPECT_EQ(BoundedSum(2, 3), 5);
  EXPECT_EQ(BoundedSum(kMax, kMax), kBound);
  EXPECT_EQ(BoundedSum(kMin, kMin), -kBound);
  EXPECT_EQ(BoundedSum(kMax, kMin), 0);
  EXPECT_EQ(Bounded(kBound + 1), kBound);
  EXPECT_EQ(Bounded(-kBound), -kBound);
}

TEST(IsLessThanOneIn, IsAsTheQuotientSays) {
  EXPECT_TRUE(IsLessThanOneIn(10, 0, 1));
  EXPECT_FALSE(IsLessThanOneIn(10, 0, 0));
  EXPECT_TRUE(IsLessThanOneIn(10, 9, 100));
  EXPECT_FALSE(IsLessThanOneIn(10, 10, 100));
  EXPECT_TRUE(IsLessThanOneIn(10, 10, 101));
  EXPECT_FALSE(IsLessThanOneIn(1000, kMax, kMax));
}

}  // namespace
}  // namespace memreplay
