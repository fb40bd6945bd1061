
#include "gtest/gtest.h"
#include "sim/device/simulated_device.h"

namespace memreplay {
namespace {

TEST(CostBySizeTest, LinesBetweenWhatWasMeasured) {
  CostBySize cost;
  EXPECT_TRUE(cost.empty());
  EXPECT_EQ(cost.At(MiB(2)), 0);
  cost.Set(MiB(20), 400);
  EXPECT_EQ(cost.At(MiB(2)), 400);
  EXPECT_EQ(cost.At(MiB(20)), 400);
  EXPECT_EQ(cost.At(MiB(40)), 800);
  cost.Set(MiB(2), 100);
  EXPECT_EQ(cost.At(Bytes(0)), 100);
  EXPECT_EQ(cost.At(MiB(2)), 100);
  EXPECT_EQ(cost.At(MiB(11)), 250);
  EXPECT_EQ(cost.At(MiB(100)), 2000);
  cost.Set(MiB(2), 200);
  EXPECT_EQ(cost.At(MiB(11)), 300);
}

TEST(CallCostsTest, ADeviceAddsThemUp) {
  CallCosts costs;
  costs.segment_alloc.Set(MiB(2), 1000);
  costs.segment_free.Set(MiB(2), 100);
  costs.map.Set(MiB(2), 10);
  costs.unmap.Set(MiB(2), 1);
  SimulatedDevice device(SimulatedDevice::Options{.capacity = MiB(20), .costs = &costs});
  const Address segment = *device.AllocateSegment(MiB(6));  // thrice as much as 2 MiB
  EXPECT_EQ(device.call_nanoseconds(), 3000);
  device.FreeSegment(segment, MiB(6));
  EXPECT_EQ(device.call_nanoseconds(), 3300);
  const Address range = *device.ReserveRange(MiB(40));
  EXPECT_TRUE(device.MapPages(range, MiB(8), MiB(2)));
  EXPECT_EQ(device.call_nanoseconds(), 3340);
  device.UnmapPages(range, MiB(4), MiB(2));
  EXPECT_EQ(device.call_nanoseconds(), 3342);
  EXPECT_FALSE(device.MapPages(range, MiB(20), MiB(2)));  // eight fit, the ninth is refused
  EXPECT_EQ(device.call_nanoseconds(), 3342 + 9 * 10);
  EXPECT_EQ(SimulatedDevice(MiB(2)).call_nanoseconds(), 0);
}

}  // namespace
}  // namespace memreplay
