#include "record/card/model/known_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memreplay::card {
namespace {

TEST(KnownBytes, NeighboursAreOneRange) {
  KnownBytes known;
  known.Add(100, 10);
  known.Add(120, 10);
  EXPECT_FALSE(known.Covers(100, 30));
  known.Add(110, 10);
  EXPECT_TRUE(known.Covers(100, 30));
  EXPECT_EQ(known.ranges(), 1U);
  EXPECT_FALSE(known.Covers(99, 2));
  EXPECT_FALSE(known.Covers(129, 2));
  EXPECT_FALSE(known.Covers(130, 1));
  EXPECT_TRUE(known.Covers(500, 0));
}

TEST(KnownBytes, ForgettingTheMiddleLeavesBothSides) {
  KnownBytes known;
  known.Add(100, 100);
  known.Forget(140, 20);
  EXPECT_TRUE(known.Covers(100, 40));
  EXPECT_TRUE(known.Covers(160, 40));
  EXPECT_FALSE(known.Covers(139, 2));
}

TEST(KnownBytes, AgreesWithABytePerByteList) {
  std::mt19937 random(11);
  KnownBytes known;
  std::vector<bool> plain(300);
  for (int step = 0; step < 5000; ++step) {
    const uint64_t from = random() % 280, size = random() % 20 + 1;
    const bool add = random() % 2 == 0;
    for (uint64_t i = from; i < from + size; ++i) plain[i] = add;
    add ? known.Add(from, size) : known.Forget(from, size);

    const uint64_t at = random() % 280, length = random() % 20 + 1;
    bool all = true;
    uint64_t count = 0;
    for (uint64_t i = at; i < at + length; ++i) {
      all = all && plain[i];
      count += plain[i] ? 1 : 0;
    }
    ASSERT_EQ(known.Covers(at, length), all) << step;
    uint64_t parts = 0;
    known.ForEach(at, length, [&](uint64_t start, uint64_t n) {
      parts += n;
      for (uint64_t i = start; i < start + n; ++i) ASSERT_TRUE(plain[i]);
    });
    ASSERT_EQ(parts, count);
  }
}

}  // namespace
}  // namespace memreplay::card
