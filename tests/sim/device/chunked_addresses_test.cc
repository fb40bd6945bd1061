#include "sim/device/chunked_addresses.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "sim/device/simulated_device.h"

namespace memreplay {
namespace {

constexpr Address kEnd = SimulatedDevice::kSegmentEnd;

SimulatedDevice OnLinux() {
  return SimulatedDevice(
      SimulatedDevice::Options{.capacity = std::nullopt, .order = AddressOrder::kChunksDownwards});
}

TEST(ChunkedAddresses, ChunksOpenFromTheTopDown) {
  SimulatedDevice device = OnLinux();
  EXPECT_EQ(device.AllocateSegment(MiB(20)), kEnd - MiB(32));
  EXPECT_EQ(device.AllocateSegment(MiB(130)), kEnd - MiB(32 + 160));
  // Into the newest chunk that has room: above the 130, not above the 20.
  EXPECT_EQ(device.AllocateSegment(MiB(2)), kEnd - MiB(32 + 30));
  EXPECT_EQ(device.AllocateSegment(MiB(10)), kEnd - MiB(32 + 28));
  EXPECT_EQ(device.AllocateSegment(MiB(20)), kEnd - MiB(32 + 160 + 32));
}

TEST(ChunkedAddresses, TheLowestHoleOfAChunkComesFirst) {
  SimulatedDevice device = OnLinux();
  const Address chunk = kEnd - MiB(32);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(device.AllocateSegment(MiB(2)).has_value());
  device.FreeSegment(chunk + MiB(8), MiB(2));
  device.FreeSegment(chunk + MiB(4), MiB(2));
  EXPECT_EQ(device.AllocateSegment(MiB(2)), chunk + MiB(4));
  EXPECT_EQ(device.AllocateSegment(MiB(2)), chunk + MiB(8));
}

TEST(ChunkedAddresses, AnEmptyChunkGoesBackAndAGapAsLargeIsNotEnough) {
  SimulatedDevice device = OnLinux();
  const Address first = *device.AllocateSegment(MiB(64));
  const Address second = *device.AllocateSegment(MiB(64));
  const Address third = *device.AllocateSegment(MiB(64));
  EXPECT_EQ(third, kEnd - MiB(192));
  device.FreeSegment(second, MiB(64));
  // A gap of 64 MiB is passed over for 64 MiB and taken for less, at its top.
  EXPECT_EQ(device.AllocateSegment(MiB(64)), kEnd - MiB(256));
  EXPECT_EQ(device.AllocateSegment(MiB(32)), second + MiB(32));
  device.FreeSegment(first, MiB(64));
  EXPECT_EQ(device.AllocateSegment(MiB(32)), first + MiB(32));
}

TEST(ChunkedAddresses, AStartKeepsItsOrderItsChunksAndTheirHoles) {
  SimulatedDevice device = OnLinux();
  const std::vector<Piece> recorded = {{Address(0x7f0000000000), MiB(20)},
                                       {Address(0x7f0000000000) + MiB(24), MiB(2)},
                                       {Address(0x7f1000000000), MiB(40)}};
  const auto addresses = device.AllocateStart(recorded);
  ASSERT_TRUE(addresses.has_value());
  EXPECT_EQ((*addresses)[2], kEnd - MiB(64));
  // Another's memory lies between: a chunk's worth is left.
  EXPECT_EQ((*addresses)[0], kEnd - MiB(64 + 32 + 32));
  EXPECT_EQ((*addresses)[1], (*addresses)[0] + MiB(24));
  // The lowest chunk is the newest.
  EXPECT_EQ(device.AllocateSegment(MiB(2)), (*addresses)[0] + MiB(20));
  EXPECT_EQ(device.AllocateSegment(MiB(24)), (*addresses)[2] + MiB(40));
  EXPECT_EQ(device.AllocateSegment(MiB(24)), (*addresses)[0] - MiB(32));
}

TEST(ChunkedAddresses, SegmentsNeverOverlap) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    SimulatedDevice device = OnLinux();
    std::vector<std::pair<Address, Bytes>> live;
    for (int i = 0; i < 400; ++i) {
      if (live.empty() || random() % 5 < 3) {
        const Bytes size = MiB(2) * (1 + random() % (random() % 4 == 0 ? 300 : 20));
        const std::optional<Address> address = device.AllocateSegment(size);
        ASSERT_TRUE(address.has_value());
        EXPECT_EQ(address->value() % MiB(2).value(), 0u);
        for (const auto& [other, other_size] : live) {
          EXPECT_TRUE(*address + size <= other || other + other_size <= *address);
        }
        live.emplace_back(*address, size);
      } else {
        const size_t which = random() % live.size();
        device.FreeSegment(live[which].first, live[which].second);
        live.erase(live.begin() + static_cast<ptrdiff_t>(which));
      }
    }
    for (const auto& [address, size] : live) device.FreeSegment(address, size);
    EXPECT_EQ(device.AllocateSegment(MiB(2)), kEnd - MiB(32));
  }
}

TEST(ChunkedAddresses, WhatNoCardHasIsStillAnswered) {
  SimulatedDevice device = OnLinux();
  const std::optional<Address> first = device.AllocateSegment(GiB(4096));
  const std::optional<Address> second = device.AllocateSegment(GiB(4096));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_NE(first, second);
  device.FreeSegment(*first, GiB(4096));
  EXPECT_EQ(device.AllocateSegment(GiB(4096)), first);
}

TEST(SimulatedDevice, TellsUpToWhereEveryLargerDeviceDoesTheSame) {
  SimulatedDevice device(MiB(10));
  EXPECT_EQ(device.same_until(), std::nullopt);
  ASSERT_TRUE(device.AllocateSegment(MiB(4)).has_value());
  EXPECT_FALSE(device.AllocateSegment(MiB(20)).has_value());
  EXPECT_EQ(device.same_until(), MiB(24));
  EXPECT_FALSE(device.AllocateSegment(MiB(8)).has_value());
  EXPECT_EQ(device.same_until(), MiB(12));
}

}  // namespace
}  // namespace memreplay
