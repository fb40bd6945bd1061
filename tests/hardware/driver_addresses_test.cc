#include "hardware/driver_addresses.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace memreplay {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kBase = uint64_t{1} << 40;
constexpr uint64_t kEnd = kBase + 16 * kGiB;

DriverAddresses OnLinux() { return {kBase, kEnd, AddressOrder::kChunksDownwards}; }

TEST(WholeDriverUnits, CountsInTwoMebibytes) {
  EXPECT_EQ(WholeDriverUnits(0), 2 * kMiB);
  EXPECT_EQ(WholeDriverUnits(1), 2 * kMiB);
  EXPECT_EQ(WholeDriverUnits(2 * kMiB), 2 * kMiB);
  EXPECT_EQ(WholeDriverUnits(2 * kMiB + 1), 4 * kMiB);
  EXPECT_EQ(WholeDriverUnits(~uint64_t{0}), ~uint64_t{0} / kDriverUnit * kDriverUnit);
}

// States first fit again as a scan over a sorted map of what is taken.
TEST(FreeAddresses, AgreeWithAPlainScan) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    FreeAddresses space;
    ASSERT_TRUE(space.Give(0x10000000, 0x6ff0000000));
    std::map<uint64_t, uint64_t> taken;  // address -> size in whole units
    std::vector<std::pair<uint64_t, uint64_t>> live;
    for (int step = 0; step < 4000; ++step) {
      if (!live.empty() && random() % 100 < 48) {
        const size_t i = random() % live.size();
        ASSERT_TRUE(space.Give(live[i].first, live[i].second));
        taken.erase(live[i].first);
        live[i] = live.back();
        live.pop_back();
      } else {
        const uint64_t size = 1 + random() % (random() % 2 == 0 ? 6 * kMiB : 60 * kMiB);
        const uint64_t units = WholeDriverUnits(size);
        uint64_t expected = 0x10000000;
        for (const auto& [address, used] : taken) {
          if (address - expected >= units) break;
          expected = address + used;
        }
        ASSERT_EQ(space.TakeLowest(size), expected) << "seed " << seed << " step " << step;
        taken[expected] = units;
        live.emplace_back(expected, size);
      }
    }
    for (const auto& [address, size] : live) ASSERT_TRUE(space.Give(address, size));
    EXPECT_EQ(space.range_count(), 1u);
  }
}

TEST(FreeAddresses, RefuseWhatCannotBe) {
  FreeAddresses space;
  EXPECT_EQ(space.TakeLowest(1), std::nullopt);
  ASSERT_TRUE(space.Give(kBase, 8 * kMiB));
  EXPECT_EQ(space.TakeLowest(10 * kMiB), std::nullopt);
  EXPECT_EQ(space.TakeTop(8 * kMiB), std::nullopt) << "no larger than what is requested";
  EXPECT_FALSE(space.TakeAt(kBase - 2 * kMiB, 2 * kMiB));
  EXPECT_FALSE(space.TakeAt(kBase + 6 * kMiB, 4 * kMiB)) << "the end is not free";
  EXPECT_FALSE(space.TakeAt(kBase + 64 * kMiB, 2 * kMiB));
  EXPECT_TRUE(space.TakeAt(kBase + 2 * kMiB, 2 * kMiB));
  EXPECT_FALSE(space.TakeAt(kBase + 2 * kMiB, 2 * kMiB)) << "taken already";
  EXPECT_FALSE(space.Give(kBase + 4 * kMiB, 2 * kMiB)) << "free already";
  EXPECT_FALSE(space.Give(kBase, 4 * kMiB)) << "free at its beginning";
  EXPECT_FALSE(space.Give(kBase + 2 * kMiB, 4 * kMiB)) << "free at its end";
  EXPECT_TRUE(space.Give(kBase + 2 * kMiB, 2 * kMiB));
  EXPECT_EQ(space.TakeLowest(8 * kMiB), kBase) << "what was refused changed nothing";
}

TEST(DriverAddressesUpwards, TakeTheLowestHole) {
  DriverAddresses space(kBase, kEnd, AddressOrder::kUpwards);
  EXPECT_EQ(space.Take(20 * kMiB), kBase);
  EXPECT_EQ(space.Take(2 * kMiB), kBase + 20 * kMiB);
  EXPECT_EQ(space.Take(1), kBase + 22 * kMiB);
  EXPECT_TRUE(space.Give(kBase, 20 * kMiB));
  EXPECT_FALSE(space.Give(kBase, 20 * kMiB));
  EXPECT_EQ(space.Take(22 * kMiB), kBase + 24 * kMiB) << "the hole is too small";
  EXPECT_EQ(space.Take(4 * kMiB), kBase);
  EXPECT_EQ(space.Take(16 * kMiB), kBase + 4 * kMiB) << "what was left of the hole";
}

// The first segments of two recordings, as distances in MiB from the lowest address. In the first
// (WSL) the embedding is initialised by a kernel before anything else is allocated. In the second
// (Windows) a model is copied to the GPU, which takes no kernel, and more is allocated then.
TEST(DriverAddressesUpwards, TheBottomIsTheDriversUntilTheFirstKernel) {
  DriverAddresses wsl(kBase, kEnd, AddressOrder::kUpwards, 80 * kMiB);
  EXPECT_EQ(wsl.Take(20 * kMiB), kBase + 80 * kMiB);
  wsl.FirstKernel();
  wsl.FirstKernel();  // the second changes nothing
  for (const uint64_t at : {0, 2, 4}) EXPECT_EQ(wsl.Take(2 * kMiB), kBase + at * kMiB);
  EXPECT_EQ(wsl.Take(20 * kMiB), kBase + 6 * kMiB);
  for (const uint64_t at : {26, 28, 30, 32}) EXPECT_EQ(wsl.Take(2 * kMiB), kBase + at * kMiB);
  EXPECT_EQ(wsl.Take(20 * kMiB), kBase + 34 * kMiB);
  for (const uint64_t at : {54, 56}) EXPECT_EQ(wsl.Take(2 * kMiB), kBase + at * kMiB);
  EXPECT_EQ(wsl.Take(20 * kMiB), kBase + 58 * kMiB);
  EXPECT_GE(wsl.Take(20 * kMiB), kBase + (80 + 20 + 80) * kMiB) << "above the driver's new place";
  EXPECT_EQ(wsl.Take(2 * kMiB), kBase + 78 * kMiB);

  DriverAddresses windows(kBase, kEnd, AddressOrder::kUpwards, 108 * kMiB);
  EXPECT_EQ(windows.Take(148 * kMiB), kBase + 108 * kMiB);
  EXPECT_EQ(windows.Take(20 * kMiB), kBase + 256 * kMiB);
  windows.FirstKernel();
  for (const uint64_t at : {0, 20, 40, 60, 80}) {
    EXPECT_EQ(windows.Take(20 * kMiB), kBase + at * kMiB);
  }
  EXPECT_GE(windows.Take(20 * kMiB), kBase + (276 + 108) * kMiB);
}

TEST(DriverAddressesInChunks, OpenFromTheTopDown) {
  DriverAddresses space = OnLinux();
  EXPECT_EQ(space.Take(20 * kMiB), kEnd - 32 * kMiB);
  EXPECT_EQ(space.Take(130 * kMiB), kEnd - (32 + 160) * kMiB);
  // The driver takes the newest chunk that has room: above the 130, not above the 20.
  EXPECT_EQ(space.Take(2 * kMiB), kEnd - (32 + 30) * kMiB);
  EXPECT_EQ(space.Take(10 * kMiB), kEnd - (32 + 28) * kMiB);
  EXPECT_EQ(space.Take(20 * kMiB), kEnd - (32 + 160 + 32) * kMiB);
  EXPECT_EQ(space.Take(12 * kMiB), kEnd - (32 + 160 + 12) * kMiB);
  EXPECT_EQ(space.Take(16 * kMiB), kEnd - (32 + 18) * kMiB) << "then the next older one";
}

TEST(DriverAddressesInChunks, TheLowestHoleOfAChunkComesFirst) {
  DriverAddresses space = OnLinux();
  const uint64_t chunk = kEnd - 32 * kMiB;
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(space.Take(2 * kMiB).has_value());
  ASSERT_TRUE(space.Give(chunk + 8 * kMiB, 2 * kMiB));
  ASSERT_TRUE(space.Give(chunk + 4 * kMiB, 2 * kMiB));
  EXPECT_EQ(space.Take(2 * kMiB), chunk + 4 * kMiB);
  EXPECT_EQ(space.Take(2 * kMiB), chunk + 8 * kMiB);
}

TEST(DriverAddressesInChunks, AnEmptyChunkGoesBackAndAGapAsLargeIsNotEnough) {
  DriverAddresses space = OnLinux();
  const uint64_t first = *space.Take(64 * kMiB);
  const uint64_t second = *space.Take(64 * kMiB);
  EXPECT_EQ(space.Take(64 * kMiB), kEnd - 192 * kMiB);
  ASSERT_TRUE(space.Give(second, 64 * kMiB));
  // The driver passes over a gap of 64 MiB for 64 MiB and takes it for less, at its top.
  EXPECT_EQ(space.Take(64 * kMiB), kEnd - 256 * kMiB);
  EXPECT_EQ(space.Take(32 * kMiB), second + 32 * kMiB);
  ASSERT_TRUE(space.Give(first, 64 * kMiB));
  EXPECT_EQ(space.Take(32 * kMiB), first + 32 * kMiB);
}

TEST(DriverAddressesInChunks, RefuseWhatCannotBe) {
  DriverAddresses space = OnLinux();
  EXPECT_EQ(space.Take(32 * kGiB), std::nullopt);
  EXPECT_EQ(space.Take(~uint64_t{0}), std::nullopt);
  EXPECT_FALSE(space.Give(kBase, 2 * kMiB)) << "no chunk is open";
  const uint64_t address = *space.Take(20 * kMiB);
  EXPECT_FALSE(space.Give(address, 40 * kMiB)) << "more than the chunk";
  EXPECT_FALSE(space.TakeAt(address + 18 * kMiB, 4 * kMiB));
  EXPECT_FALSE(space.TakeAt(address + 30 * kMiB, 4 * kMiB)) << "two chunks";
  EXPECT_TRUE(space.TakeAt(address + 20 * kMiB, 12 * kMiB));
  EXPECT_TRUE(space.Give(address, 20 * kMiB));
  EXPECT_FALSE(space.Give(address, 20 * kMiB));
}

TEST(DriverAddresses, NothingIsHandedOutTwice) {
  for (const AddressOrder order : {AddressOrder::kUpwards, AddressOrder::kChunksDownwards}) {
    for (uint32_t seed = 0; seed < 10; ++seed) {
      std::mt19937 random(seed);
      DriverAddresses space(kBase, kEnd, order, 100 * kMiB);
      std::vector<std::pair<uint64_t, uint64_t>> live;
      for (int step = 0; step < 1000; ++step) {
        if (step == 200) space.FirstKernel();
        if (live.empty() || random() % 5 < 3) {
          const uint64_t size = 2 * kMiB * (1 + random() % (random() % 4 == 0 ? 300 : 20));
          const std::optional<uint64_t> address = space.Take(size);
          if (!address.has_value()) continue;
          ASSERT_EQ(*address % kDriverUnit, 0u);
          ASSERT_GE(*address, kBase);
          ASSERT_LE(*address + size, kEnd);
          for (const auto& [other, length] : live) {
            ASSERT_TRUE(*address + size <= other || other + length <= *address);
          }
          live.emplace_back(*address, size);
        } else {
          const size_t which = random() % live.size();
          ASSERT_TRUE(space.Give(live[which].first, live[which].second));
          live.erase(live.begin() + static_cast<ptrdiff_t>(which));
        }
      }
      for (const auto& [address, size] : live) ASSERT_TRUE(space.Give(address, size));
      if (order == AddressOrder::kUpwards) continue;
      EXPECT_EQ(space.Take(2 * kMiB), kEnd - 32 * kMiB) << "every chunk is closed";
    }
  }
}

}  // namespace
}  // namespace memreplay
