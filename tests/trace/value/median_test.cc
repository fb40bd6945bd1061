#include "trace/value/median.h"

#include <gtest/gtest.h>

namespace memreplay {
namespace {

TEST(Median, IsTheUpperOneOfTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, -1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 3, 2}), 3);
}

}  // namespace
}  // namespace memreplay
