#include "sim/device/simulated_device.h"

#include <map>
#include <memory>
#include <random>
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
  const Address range = device.ReserveRange(MiB(100));
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
  const Address range = device.ReserveRange(GiB(2000));
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

TEST(SimulatedDeviceDeathTest, MisuseStopsTheProcess) {
  SimulatedDevice device(MiB(100));
  const Address a = *device.AllocateSegment(MiB(20));
  EXPECT_DEATH(device.FreeSegment(a + MiB(2), MiB(18)), "no segment");
  EXPECT_DEATH(device.FreeSegment(a, MiB(2)), "another size");
  EXPECT_DEATH(device.ReleaseRange(a, MiB(20)), "not reserved");
  EXPECT_DEATH(device.UnmapPages(a, MiB(40), MiB(20)), "more pages");
}

// First fit stated again as a scan over a sorted map of what is taken.
TEST(AddressSpaceTest, AgreesWithAPlainScan) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    AddressSpace space({{Address(0x10000000), Address(0x7000000000)}});
    std::map<uint64_t, uint64_t> taken;  // address -> size in whole units
    std::vector<std::pair<uint64_t, uint64_t>> live;
    for (int step = 0; step < 4000; ++step) {
      if (!live.empty() && random() % 100 < 48) {
        const size_t i = random() % live.size();
        space.Give(Address(live[i].first), Bytes(live[i].second));
        taken.erase(live[i].first);
        live[i] = live.back();
        live.pop_back();
      } else {
        const uint64_t size = 1 + random() % (random() % 2 == 0 ? MiB(6) : MiB(60)).value();
        const uint64_t units = RoundUp(Bytes(size), MiB(2)).value();
        uint64_t expected = 0x10000000;
        for (const auto& [address, used] : taken) {
          if (address - expected >= units) break;
          expected = address + used;
        }
        ASSERT_EQ(space.Take(Bytes(size)), Address(expected)) << "seed " << seed << " " << step;
        taken[expected] = units;
        live.emplace_back(expected, size);
      }
    }
    for (const auto& [address, size] : live) space.Give(Address(address), Bytes(size));
    EXPECT_EQ(space.hole_count(), 1u);
  }
}

}  // namespace
}  // namespace memreplay
