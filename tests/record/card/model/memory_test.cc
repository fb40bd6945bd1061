#include "record/card/model/memory.h"

#include <gtest/gtest.h>

namespace memreplay::card {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr Memory::Regions kRegions = {std::uint64_t{1} << 40, std::uint64_t{2} << 40,
                                      std::uint64_t{2} << 40, std::uint64_t{3} << 40};

TEST(Memory, CapacityIsCountedInWholeUnits) {
  Memory memory(11 * kMiB, kRegions, AddressOrder::kUpwards);
  EXPECT_NE(memory.allocate(1), 0U);
  EXPECT_EQ(memory.used(), 2 * kMiB);
  EXPECT_EQ(memory.free_bytes(), 9 * kMiB);
  EXPECT_NE(memory.allocate(8 * kMiB), 0U);
  EXPECT_EQ(memory.allocate(1), 0U) << "1 MiB is left, which is no unit";
  EXPECT_EQ(memory.free_bytes(), kMiB);
}

TEST(Memory, PagesTakeCapacityAndReservationsDoNot) {
  Memory memory(10 * kMiB, kRegions, AddressOrder::kChunksDownwards);
  EXPECT_EQ(memory.reserve(std::uint64_t{1} << 38), kRegions.reservations);
  EXPECT_EQ(memory.used(), 0U);
  const std::uint64_t page = memory.create_page(6 * kMiB);
  EXPECT_NE(page, 0U);
  EXPECT_EQ(memory.create_page(6 * kMiB), 0U);
  EXPECT_TRUE(memory.release_page(page));
  EXPECT_FALSE(memory.release_page(page));
  EXPECT_NE(memory.create_page(6 * kMiB), page) << "handles are not used twice";
}

TEST(Memory, TheFirstKernelOpensTheBottom) {
  Memory memory(1024 * kMiB, kRegions, AddressOrder::kUpwards, 80 * kMiB);
  EXPECT_EQ(memory.allocate(20 * kMiB), kRegions.allocations + 80 * kMiB);
  EXPECT_EQ(memory.used(), 20 * kMiB) << "addresses that the driver has are no memory";
  memory.first_kernel();
  EXPECT_EQ(memory.allocate(2 * kMiB), kRegions.allocations);
}

TEST(Memory, OthersTakeWhatTheyTake) {
  Memory memory(10 * kMiB, kRegions, AddressOrder::kUpwards);
  memory.external(7 * kMiB + 5);
  EXPECT_EQ(memory.free_bytes(), 3 * kMiB - 5);
  EXPECT_EQ(memory.allocate(4 * kMiB), 0U);
  memory.external(4 * static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(memory.free_bytes(), 0U) << "never below zero";
  memory.external(-20 * static_cast<std::int64_t>(kMiB));
  EXPECT_EQ(memory.free_bytes(), 10 * kMiB);
}

TEST(Memory, FailuresAreUsedUpByCallsThatReachTheDriver) {
  Memory memory(100 * kMiB, kRegions, AddressOrder::kUpwards);
  memory.fail_next(2);
  EXPECT_EQ(memory.allocate(1), 0U);
  EXPECT_NE(memory.reserve(1), 0U);
  EXPECT_EQ(memory.create_page(1), 0U);
  EXPECT_NE(memory.allocate(1), 0U);
}

TEST(Memory, ThePeakStays) {
  Memory memory(100 * kMiB, kRegions, AddressOrder::kUpwards);
  const std::uint64_t a = memory.allocate(40 * kMiB);
  memory.free(a);
  memory.allocate(10 * kMiB);
  EXPECT_EQ(memory.peak_used(), 40 * kMiB);
  EXPECT_EQ(memory.used(), 10 * kMiB);
  EXPECT_EQ(memory.free(a + 1), 0U);
}

}  // namespace
}  // namespace memreplay::card
