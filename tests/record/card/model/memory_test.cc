#include "record/card/model/memory.h"

#include <gtest/gtest.h>

namespace memreplay::card {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr Memory::Regions kRegions = {uint64_t{1} << 40, uint64_t{2} << 40, uint64_t{2} << 40,
                                      uint64_t{3} << 40};

TEST(Memory, CapacityIsCountedInWholeUnits) {
  Memory memory(11 * kMiB, kRegions, AddressOrder::kUpwards);
  EXPECT_NE(memory.Allocate(1), 0U);
  EXPECT_EQ(memory.used(), 2 * kMiB);
  EXPECT_EQ(memory.free_bytes(), 9 * kMiB);
  EXPECT_NE(memory.Allocate(8 * kMiB), 0U);
  EXPECT_EQ(memory.Allocate(1), 0U) << "1 MiB is left, which is no unit";
  EXPECT_EQ(memory.free_bytes(), kMiB);
}

TEST(Memory, PagesTakeCapacityAndReservationsDoNot) {
  Memory memory(10 * kMiB, kRegions, AddressOrder::kChunksDownwards);
  EXPECT_EQ(memory.Reserve(uint64_t{1} << 38), kRegions.reservations);
  EXPECT_EQ(memory.used(), 0U);
  const uint64_t page = memory.CreatePage(6 * kMiB);
  EXPECT_NE(page, 0U);
  EXPECT_EQ(memory.CreatePage(6 * kMiB), 0U);
  EXPECT_TRUE(memory.ReleasePage(page));
  EXPECT_FALSE(memory.ReleasePage(page));
  EXPECT_NE(memory.CreatePage(6 * kMiB), page) << "handles are not used twice";
}

TEST(Memory, TheFirstKernelOpensTheBottom) {
  Memory memory(1024 * kMiB, kRegions, AddressOrder::kUpwards, 80 * kMiB);
  EXPECT_EQ(memory.Allocate(20 * kMiB), kRegions.allocations + 80 * kMiB);
  EXPECT_EQ(memory.used(), 20 * kMiB) << "addresses that the driver has are no memory";
  memory.FirstKernel();
  EXPECT_EQ(memory.Allocate(2 * kMiB), kRegions.allocations);
}

TEST(Memory, OthersTakeWhatTheyTake) {
  Memory memory(10 * kMiB, kRegions, AddressOrder::kUpwards);
  memory.TakeExternal(7 * kMiB + 5);
  EXPECT_EQ(memory.free_bytes(), 3 * kMiB - 5);
  EXPECT_EQ(memory.Allocate(4 * kMiB), 0U);
  memory.TakeExternal(4 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(memory.free_bytes(), 0U) << "never below zero";
  memory.TakeExternal(-20 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(memory.free_bytes(), 10 * kMiB);
}

TEST(Memory, FailuresAreUsedUpByCallsThatReachTheDriver) {
  Memory memory(100 * kMiB, kRegions, AddressOrder::kUpwards);
  memory.FailNext(2);
  EXPECT_EQ(memory.Allocate(1), 0U);
  EXPECT_NE(memory.Reserve(1), 0U);
  EXPECT_EQ(memory.CreatePage(1), 0U);
  EXPECT_NE(memory.Allocate(1), 0U);
}

TEST(Memory, ThePeakStays) {
  Memory memory(100 * kMiB, kRegions, AddressOrder::kUpwards);
  const uint64_t a = memory.Allocate(40 * kMiB);
  memory.Free(a);
  memory.Allocate(10 * kMiB);
  EXPECT_EQ(memory.peak_used(), 40 * kMiB);
  EXPECT_EQ(memory.used(), 10 * kMiB);
  EXPECT_EQ(memory.Free(a + 1), 0U);
}

}  // namespace
}  // namespace memreplay::card
