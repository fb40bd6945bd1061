#include "sim/device/simulated_device.h"

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/support/device_contract.h"

namespace memreplay {
namespace {

struct SimulatedTraits {
  static constexpr bool kExactFreeMemory = true;
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return std::make_unique<SimulatedDevice>(
        SimulatedDevice::Options{.capacity = memory, .explicit_completion = explicit_completion});
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DeviceContractTest, SimulatedTraits);

Address Segment(uint64_t mib) { return SimulatedDevice::kSegmentBase + MiB(mib); }

TEST(SimulatedDeviceTest, LowestHoleThatFitsIsReused) {
  SimulatedDevice device(MiB(100));
  EXPECT_EQ(device.AllocateSegment(MiB(20)), Segment(0));
  EXPECT_EQ(device.AllocateSegment(MiB(10)), Segment(20));
  EXPECT_EQ(device.AllocateSegment(MiB(20)), Segment(30));
  EXPECT_EQ(device.AllocateSegment(MiB(2)), Segment(50));
  device.FreeSegment(Segment(20), MiB(10));
  device.FreeSegment(Segment(0), MiB(20));  // one hole of 30 MiB now
  EXPECT_EQ(device.AllocateSegment(MiB(12)), Segment(0));
  EXPECT_EQ(device.AllocateSegment(MiB(20)), Segment(52));
  EXPECT_EQ(device.AllocateSegment(MiB(18)), Segment(12));
  EXPECT_EQ(device.AllocateSegment(MiB(2)), Segment(72));
}

TEST(SimulatedDeviceTest, CountsWholeUnits) {
  SimulatedDevice device(MiB(7));
  EXPECT_EQ(device.TotalMemory(), MiB(7));
  EXPECT_EQ(device.AllocateSegment(Bytes(1)), Segment(0));
  EXPECT_EQ(device.FreeMemory(), MiB(5));
  EXPECT_EQ(device.AllocateSegment(MiB(2) + Bytes(1)), Segment(2));
  EXPECT_EQ(device.FreeMemory(), MiB(1));
  EXPECT_FALSE(device.AllocateSegment(Bytes(512)).has_value());  // less than a unit is left
  device.FreeSegment(Segment(0), Bytes(1));
  EXPECT_EQ(device.FreeMemory(), MiB(3));
}

TEST(SimulatedDeviceTest, ReservationsFollowTheSameRuleElsewhere) {
  SimulatedDevice device(MiB(20));
  const Address base = SimulatedDevice::kReservationBase;
  EXPECT_EQ(device.ReserveRange(MiB(30)), base);
  EXPECT_EQ(device.ReserveRange(MiB(40)), base + MiB(30));
  device.ReleaseRange(base, MiB(30));
  EXPECT_EQ(device.ReserveRange(MiB(32)), base + MiB(70));
  EXPECT_EQ(device.ReserveRange(MiB(28)), base);
  EXPECT_EQ(device.FreeMemory(), MiB(20));
}

TEST(SimulatedDeviceTest, MappingFailsPageByPage) {
  SimulatedDevice device(MiB(50));
  const Address range = *device.ReserveRange(MiB(100));
  device.FailNext(1);
  EXPECT_FALSE(device.MapPages(range, MiB(40), MiB(20)));
  EXPECT_EQ(device.FreeMemory(), MiB(50));
  EXPECT_FALSE(device.MapPages(range, MiB(60), MiB(20)));  // the third page has no room
  EXPECT_EQ(device.FreeMemory(), MiB(50));
  EXPECT_TRUE(device.MapPages(range, MiB(40), MiB(20)));
  EXPECT_EQ(device.FreeMemory(), MiB(10));
}

TEST(SimulatedDeviceTest, UnlimitedNeverRunsOut) {
  SimulatedDevice device(SimulatedDevice::Options{});
  EXPECT_EQ(device.TotalMemory(), SimulatedDevice::kUnlimitedTotal);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(device.AllocateSegment(GiB(100)).has_value());
  EXPECT_EQ(device.FreeMemory(), Bytes(0));
  const Address range = *device.ReserveRange(GiB(2000));
  EXPECT_TRUE(device.MapPages(range, GiB(20), MiB(20)));
  device.FailNext(1);
  EXPECT_FALSE(device.AllocateSegment(MiB(2)).has_value());
}

TEST(SimulatedDeviceTest, OutsideMemoryCounts) {
  SimulatedDevice device(MiB(10));
  device.TakeOutside(MiB(5));
  EXPECT_EQ(device.FreeMemory(), MiB(5));
  EXPECT_FALSE(device.AllocateSegment(MiB(6)).has_value());
  EXPECT_TRUE(device.AllocateSegment(MiB(4)).has_value());
  device.TakeOutside(MiB(20));  // always succeeds
  EXPECT_EQ(device.FreeMemory(), Bytes(0));
  device.ReturnOutside(MiB(25));
  EXPECT_EQ(device.FreeMemory(), MiB(6));
}

// What a file makes up is refused, not a broken invariant.
TEST(SimulatedDeviceTest, RunsOutOfAddresses) {
  for (const AddressOrder order : {AddressOrder::kUpwards, AddressOrder::kChunksDownwards}) {
    SimulatedDevice::Options options;
    options.order = order;
    SimulatedDevice device(options);
    EXPECT_FALSE(device.AllocateSegment(kMaxDeviceMemory + MiB(2)).has_value());
    EXPECT_TRUE(device.AllocateSegment(Bytes(kMaxDeviceMemory.value() / 2)).has_value());
    EXPECT_TRUE(device.AllocateSegment(Bytes(kMaxDeviceMemory.value() / 2)).has_value());
    EXPECT_FALSE(device.AllocateSegment(MiB(2)).has_value()) << "all that any device has";
    int ranges = 0;
    while (device.ReserveRange(Bytes(uint64_t{1} << 60)).has_value()) ++ranges;
    EXPECT_EQ(ranges, 5);
  }
}

TEST(SimulatedDeviceTest, RefusesAStartThatHasNoRoom) {
  for (const AddressOrder order : {AddressOrder::kUpwards, AddressOrder::kChunksDownwards}) {
    const auto fits = [order](const std::vector<Piece>& pieces) {
      SimulatedDevice::Options options;
      options.order = order;
      SimulatedDevice device(options);
      return device.AllocateStart(pieces).has_value();
    };
    const Address base(0x7f0000000000);
    EXPECT_TRUE(fits({{base, MiB(20)}, {base + MiB(20), MiB(2)}}));
    EXPECT_FALSE(fits({{base, MiB(20)}, {base + MiB(19), MiB(20)}})) << "overlap";
    EXPECT_FALSE(fits({{base, MiB(1)}, {base + MiB(1), MiB(2)}})) << "share a unit of 2 MiB";
    EXPECT_EQ(fits({{base, GiB(2048)}}), order == AddressOrder::kUpwards);
  }
}

TEST(SimulatedDeviceDeathTest, MisuseStopsTheProcess) {
  SimulatedDevice device(MiB(100));
  const Address a = *device.AllocateSegment(MiB(20));
  EXPECT_DEATH(device.FreeSegment(a + MiB(2), MiB(18)), "no segment");
  EXPECT_DEATH(device.FreeSegment(a, MiB(2)), "another size");
  EXPECT_DEATH(device.ReleaseRange(a, MiB(20)), "not reserved");
  EXPECT_DEATH(device.UnmapPages(a, MiB(40), MiB(20)), "more pages");
}

SimulatedDevice OnLinux() {
  return SimulatedDevice(
      SimulatedDevice::Options{.capacity = std::nullopt, .order = AddressOrder::kChunksDownwards});
}

TEST(SimulatedDevice, AStartKeepsItsOrderItsChunksAndTheirHoles) {
  constexpr Address kEnd = SimulatedDevice::kSegmentEnd;
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

TEST(SimulatedDevice, WhatNoCardHasIsStillAnswered) {
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
