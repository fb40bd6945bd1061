#include "record/card/address_space.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memreplay::card {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBase = std::uint64_t{1} << 40;
constexpr std::uint64_t kEnd = kBase + (std::uint64_t{1} << 34);

TEST(WholeUnits, CountsInTwoMebibytes) {
  EXPECT_EQ(WholeUnits(0), 2 * kMiB);
  EXPECT_EQ(WholeUnits(1), 2 * kMiB);
  EXPECT_EQ(WholeUnits(2 * kMiB), 2 * kMiB);
  EXPECT_EQ(WholeUnits(2 * kMiB + 1), 4 * kMiB);
}

TEST(AddressSpace, UpwardsTakesTheLowestHole) {
  AddressSpace space(kBase, kEnd, AddressOrder::kUpwards);
  const std::uint64_t a = space.take(20 * kMiB), b = space.take(2 * kMiB), c = space.take(1);
  EXPECT_EQ(a, kBase);
  EXPECT_EQ(b, kBase + 20 * kMiB);
  EXPECT_EQ(c, kBase + 22 * kMiB);
  EXPECT_EQ(space.give(a), 20 * kMiB);
  EXPECT_EQ(space.take(22 * kMiB), kBase + 24 * kMiB) << "the hole is too small";
  EXPECT_EQ(space.take(4 * kMiB), kBase);
  EXPECT_EQ(space.take(16 * kMiB), kBase + 4 * kMiB) << "what was left of the hole";
}

TEST(AddressSpace, ChunksOpenBelowTheLastAndFillUpwards) {
  AddressSpace space(kBase, kEnd, AddressOrder::kChunks);
  const std::uint64_t first = space.take(2 * kMiB);
  EXPECT_EQ(first, kEnd - 32 * kMiB);
  EXPECT_EQ(space.take(20 * kMiB), first + 2 * kMiB) << "the newest chunk has room";
  const std::uint64_t large = space.take(60 * kMiB);
  EXPECT_EQ(large, first - 64 * kMiB) << "a chunk of its own, in whole 32 MiB";
  EXPECT_EQ(space.take(4 * kMiB), large + 60 * kMiB) << "the newest chunk first";
  EXPECT_EQ(space.take(10 * kMiB), first + 22 * kMiB) << "then older ones";
}

TEST(AddressSpace, AChunkThatIsAllFreeIsClosed) {
  AddressSpace space(kBase, kEnd, AddressOrder::kChunks);
  const std::uint64_t a = space.take(2 * kMiB), b = space.take(30 * kMiB);
  const std::uint64_t c = space.take(32 * kMiB);
  EXPECT_EQ(c, a - 32 * kMiB);
  space.give(a);
  space.give(b);
  EXPECT_EQ(space.take(64 * kMiB), c - 64 * kMiB) << "the closed chunk alone is too small";
  EXPECT_EQ(space.take(32 * kMiB), a) << "the highest room is the closed chunk's";
}

TEST(AddressSpace, NothingIsHandedOutTwice) {
  for (const AddressOrder order : {AddressOrder::kUpwards, AddressOrder::kChunks}) {
    AddressSpace space(kBase, kEnd, order);
    std::mt19937 random(7);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> live;
    for (int step = 0; step < 4000; ++step) {
      if (random() % 2 == 0 || live.empty()) {
        const std::uint64_t size = (random() % 60 + 1) * 2 * kMiB;
        const std::uint64_t address = space.take(size);
        if (address == 0) continue;
        ASSERT_GE(address, kBase);
        ASSERT_LE(address + size, kEnd);
        for (const auto& [other, length] : live) {
          ASSERT_TRUE(address + size <= other || other + length <= address);
        }
        live.push_back({address, size});
      } else {
        const std::size_t which = random() % live.size();
        ASSERT_EQ(space.give(live[which].first), live[which].second);
        ASSERT_EQ(space.give(live[which].first), 0U) << "given twice";
        live[which] = live.back();
        live.pop_back();
      }
    }
    for (const auto& [address, size] : live) space.give(address);
    EXPECT_EQ(space.take(kEnd - kBase), kBase) << "all of it is one hole again";
  }
}

}  // namespace
}  // namespace memreplay::card
