#include <gtest/gtest.h>

#include "record/card/model/memory.h"

namespace memreplay::card {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr Memory::Regions kRegions = {uint64_t{1} << 40, uint64_t{2} << 40, uint64_t{2} << 40,
                                      uint64_t{3} << 40};

class MemoryPoolTest : public testing::Test {
 protected:
  Memory memory_{10 * kMiB, kRegions, AddressOrder::kUpwards};
  MemoryPool pool_{&memory_};
};

TEST_F(MemoryPoolTest, SmallPiecesShareAUnit) {
  const uint64_t first = pool_.Allocate(1), second = pool_.Allocate(1000);
  ASSERT_TRUE(first != 0 && second != 0 && first != second);
  EXPECT_EQ(pool_.used(), 512U + 1024U);
  EXPECT_EQ(memory_.used(), 2 * kMiB);
  EXPECT_NE(pool_.Free(first), 0U);
  EXPECT_EQ(pool_.Free(first), 0U) << "freed twice";
  EXPECT_EQ(memory_.used(), 2 * kMiB);
  EXPECT_NE(pool_.Free(second), 0U);
  EXPECT_EQ(memory_.used(), 0U);
  EXPECT_EQ(pool_.most_used(), 512U + 1024U);
}

TEST_F(MemoryPoolTest, FreedMemoryStaysUpToTheThreshold) {
  pool_.keep = 3 * kMiB;
  const uint64_t piece = pool_.Allocate(8 * kMiB);
  ASSERT_NE(piece, 0U);
  EXPECT_NE(pool_.Free(piece), 0U);
  EXPECT_EQ(pool_.used(), 0U);
  EXPECT_EQ(memory_.used(), 4 * kMiB) << "in whole units";
  EXPECT_NE(pool_.Allocate(4 * kMiB), 0U);
  EXPECT_EQ(memory_.used(), 4 * kMiB);
  pool_.Trim(0);
  EXPECT_EQ(memory_.used(), 4 * kMiB) << "all of it is live";
}

TEST_F(MemoryPoolTest, WhatDoesNotFitChangesNothing) {
  const uint64_t piece = pool_.Allocate(6 * kMiB);
  ASSERT_NE(piece, 0U);
  EXPECT_EQ(pool_.Allocate(6 * kMiB), 0U);
  EXPECT_EQ(pool_.Allocate(~uint64_t{0}), 0U);
  EXPECT_EQ(memory_.used(), 6 * kMiB);
  EXPECT_EQ(pool_.held(), 6 * kMiB);
  EXPECT_NE(pool_.Allocate(4 * kMiB), 0U);
}

}  // namespace
}  // namespace memreplay::card
