// Tests devices that stand before another one: they must do what every device does.
#include "sim/device/watched_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sim/device/simulated_device.h"
#include "tests/sim/support/device_contract.h"

namespace memreplay {
namespace {

// Keeps the device that stands behind.
template <typename Front>
class Behind final : public ForwardingDevice {
 public:
  template <typename... More>
  explicit Behind(const SimulatedDevice::Options& options, More... more)
      : ForwardingDevice(static_cast<Device&>(front_)),
        behind_(options),
        front_(behind_, std::move(more)...) {}

 private:
  SimulatedDevice behind_;
  Front front_;
};

struct WatchedTraits {
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return std::make_unique<Behind<WatchedDevice>>(
        SimulatedDevice::Options{.capacity = memory, .explicit_completion = explicit_completion});
  }
  static constexpr bool kExactFreeMemory = true;
};

struct RelocatedTraits {
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return std::make_unique<Behind<RelocatedDevice>>(
        SimulatedDevice::Options{.capacity = memory, .explicit_completion = explicit_completion},
        absl::Span<const MemoryCall>());
  }
  static constexpr bool kExactFreeMemory = true;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Watched, DeviceContractTest, WatchedTraits);
INSTANTIATE_TYPED_TEST_SUITE_P(Relocated, DeviceContractTest, RelocatedTraits);

TEST(WatchedDevice, LogsCallsWithPlacesAndUsedBytes) {
  SimulatedDevice device(MiB(64));
  WatchedDevice watched(device);
  const Address a = *watched.AllocateSegment(MiB(20));
  watched.OnRequest(7);
  const Address range = *watched.ReserveRange(MiB(100));
  EXPECT_TRUE(watched.MapPages(range + MiB(2), MiB(4), MiB(2)));
  EXPECT_FALSE(watched.AllocateSegment(MiB(60)).has_value());
  watched.FreeSegment(a, MiB(20));

  const absl::Span<const MemoryCall> calls = watched.calls();
  ASSERT_EQ(calls.size(), 5u);
  EXPECT_EQ(calls[0].kind, MemoryCall::Kind::kAllocate);
  EXPECT_EQ(calls[0].request, kBeforeFirstRequest);
  EXPECT_EQ(calls[0].used, 20 << 20);
  EXPECT_EQ(calls[1].kind, MemoryCall::Kind::kReserve);
  EXPECT_EQ(calls[1].place, (Place{1, Bytes(0)}));
  EXPECT_EQ(calls[1].request, 7u);
  EXPECT_EQ(calls[2].place, (Place{1, MiB(2)}));
  EXPECT_EQ(calls[2].used, 24 << 20);
  EXPECT_FALSE(calls[3].granted);
  EXPECT_EQ(calls[3].place.region, kNoRegion);
  EXPECT_EQ(calls[4].place, (Place{0, Bytes(0)}));
  EXPECT_EQ(calls[4].used, 4 << 20);
}

TEST(WatchedDevice, AnAddressMeansTheRegionThatIsThereNow) {
  SimulatedDevice device(MiB(64));
  WatchedDevice watched(device);
  const Address a = *watched.AllocateSegment(MiB(4));
  EXPECT_EQ(watched.PlaceOf(a + MiB(2)), (Place{0, MiB(2)}));
  watched.FreeSegment(a, MiB(4));
  EXPECT_EQ(watched.PlaceOf(a + MiB(2)), (Place{0, MiB(2)})) << "what was there last";
  ASSERT_EQ(*watched.AllocateSegment(MiB(2)), a);
  EXPECT_EQ(watched.PlaceOf(a), (Place{1, Bytes(0)}));
  EXPECT_EQ(watched.PlaceOf(a + MiB(2)).region, kNoRegion);
}

TEST(WatchedDevice, GivesEverythingBack) {
  SimulatedDevice device(MiB(256));
  const Bytes free = device.FreeMemory();
  WatchedDevice watched(device);
  ASSERT_TRUE(watched.AllocateSegment(MiB(20)).has_value());
  const Address range = *watched.ReserveRange(MiB(80));
  ASSERT_TRUE(watched.MapPages(range, MiB(60), MiB(20)));
  watched.UnmapPages(range + MiB(20), MiB(20), MiB(20));
  EXPECT_LT(device.FreeMemory(), free);
  watched.ReleaseAll();
  EXPECT_EQ(device.FreeMemory(), free);
  // The range is free again: the device would stop the process otherwise.
  device.ReleaseRange(*device.ReserveRange(MiB(80)), MiB(80));
}

TEST(WatchedDevice, AnotherCountOfFreeMemory) {
  SimulatedDevice device(MiB(256));
  WatchedDevice watched(device, [&] { return GiB(80) + device.FreeMemory() - MiB(1); });
  ASSERT_TRUE(watched.AllocateSegment(MiB(20)).has_value());
  EXPECT_EQ(watched.calls().back().used, 20 << 20);
  EXPECT_EQ(watched.UsedNow(), 20 << 20);
  EXPECT_EQ(watched.FreeMemory(), MiB(236)) << "what the allocator is told";
}

TEST(WatchedDevice, MemoryTakenByOthersIsNotUsed) {
  SimulatedDevice device(MiB(256));
  WatchedDevice watched(device);
  watched.TakeOutside(MiB(100));
  ASSERT_TRUE(watched.AllocateSegment(MiB(20)).has_value());
  EXPECT_EQ(watched.calls().back().used, 20 << 20);
  watched.ReturnOutside(MiB(100));
  ASSERT_TRUE(watched.AllocateSegment(MiB(2)).has_value());
  EXPECT_EQ(watched.calls().back().used, 22 << 20);
}

TEST(RelocatedDevice, FollowsGrantedCallsOfTheSameRequest) {
  const auto call = [](MemoryCall::Kind kind, uint64_t address, Bytes size, uint32_t request) {
    MemoryCall made;
    made.kind = kind;
    made.address = Address(address);
    made.size = size;
    made.request = request;
    return made;
  };
  using Kind = MemoryCall::Kind;
  const std::vector<MemoryCall> calls = {
      call(Kind::kAllocate, 0x9000000000, MiB(2), 0),
      call(Kind::kAllocate, 0x8000000000, MiB(20), 1),
      call(Kind::kReserve, 0x5000000000, MiB(100), 2),
  };
  SimulatedDevice inner(MiB(256));
  RelocatedDevice device(inner, calls);
  device.OnRequest(0);
  const Address first = *device.AllocateSegment(MiB(2));
  EXPECT_EQ(first, Address(0x9000000000));
  EXPECT_EQ(*device.AllocateSegment(MiB(2)), RelocatedDevice::kInventedBase) << "one too many";
  device.OnRequest(1);
  EXPECT_EQ(*device.AllocateSegment(MiB(20)), Address(0x8000000000));
  device.OnRequest(2);
  const Address range = *device.ReserveRange(MiB(100));
  EXPECT_EQ(range, Address(0x5000000000));
  EXPECT_TRUE(device.MapPages(range, MiB(4), MiB(2)));
  EXPECT_EQ(device.invented(), 1u);
  EXPECT_EQ(inner.FreeMemory(), MiB(256 - 2 - 2 - 20 - 4));
  device.FreeSegment(first, MiB(2));
  EXPECT_EQ(inner.FreeMemory(), MiB(256 - 2 - 20 - 4));
}

}  // namespace
}  // namespace memreplay
