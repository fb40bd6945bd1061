#include "gtest/gtest.h"
#include "report/words/sizes.h"

namespace memreplay {
namespace {

TEST(DurationTest, ThreeDigitsOrSo) {
  EXPECT_EQ(FormatDuration(0), "0 ns");
  EXPECT_EQ(FormatDuration(999), "999 ns");
  EXPECT_EQ(FormatDuration(1500), "1.5 us");
  EXPECT_EQ(FormatDuration(12'250'000), "12.25 ms");
  EXPECT_EQ(FormatDuration(3'000'000'000), "3.00 s");
}

}  // namespace
}  // namespace memreplay
