// The contract of every Device, whatever it is made of. This runs it on a device:
//
//   struct MyDeviceTraits {
//     // A device with at least `memory` free; `explicit_completion` as in
//     // kExplicit programs. Null: not here (the test is skipped).
//     static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion);
//     static constexpr bool kExactFreeMemory = true;  // nobody else uses it
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyDevice, DeviceContractTest, MyDeviceTraits);
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/model/device.h"

namespace memreplay {

template <typename Traits>
class DeviceContractTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = Traits::Make(MiB(256), /*explicit_completion=*/false);
    if (device_ == nullptr) GTEST_SKIP() << "no such device here";
  }
  // Free memory is exact only where nobody else takes any.
  void ExpectFree(Bytes expected) {
    if (Traits::kExactFreeMemory) {
      EXPECT_EQ(device_->FreeMemory(), expected);
    }
  }

  std::unique_ptr<Device> device_;
};

TYPED_TEST_SUITE_P(DeviceContractTest);

TYPED_TEST_P(DeviceContractTest, MemoryIsCountedAndComesBack) {
  Device& device = *this->device_;
  const Bytes total = device.TotalMemory();
  const Bytes free = device.FreeMemory();
  ASSERT_GT(total, Bytes(0));
  ASSERT_LE(free, total);
  const std::optional<Address> a = device.AllocateSegment(MiB(20));
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(device.TotalMemory(), total);
  this->ExpectFree(free - MiB(20));
  device.FreeSegment(*a, MiB(20));
  this->ExpectFree(free);
}

TYPED_TEST_P(DeviceContractTest, SegmentsAreApartAndAligned) {
  Device& device = *this->device_;
  std::vector<std::pair<Address, Bytes>> segments;
  for (const Bytes size : {MiB(2), MiB(20), MiB(2), MiB(12), Bytes(512), MiB(2) + Bytes(1)}) {
    const std::optional<Address> address = device.AllocateSegment(size);
    ASSERT_TRUE(address.has_value());
    EXPECT_FALSE(address->is_null());
    EXPECT_EQ(address->value() % 512, 0u);
    segments.emplace_back(*address, size);
  }
  std::sort(segments.begin(), segments.end());
  for (size_t i = 1; i < segments.size(); ++i) {
    EXPECT_LE(segments[i - 1].first + segments[i - 1].second, segments[i].first);
  }
  for (const auto& [address, size] : segments) device.FreeSegment(address, size);
}

TYPED_TEST_P(DeviceContractTest, OutOfMemoryIsAnAnswer) {
  Device& device = *this->device_;
  EXPECT_FALSE(device.AllocateSegment(device.TotalMemory() + MiB(2)).has_value());
  EXPECT_FALSE(device.AllocateSegment(Bytes(uint64_t{1} << 62)).has_value());
  const std::optional<Address> a = device.AllocateSegment(MiB(2));
  ASSERT_TRUE(a.has_value());
  device.FreeSegment(*a, MiB(2));
}

TYPED_TEST_P(DeviceContractTest, InjectedFailuresHitSegmentsAndPages) {
  Device& device = *this->device_;
  const Bytes free = device.FreeMemory();
  const Address range = *device.ReserveRange(MiB(40));
  device.FailNext(2);
  EXPECT_FALSE(device.AllocateSegment(MiB(2)).has_value());
  EXPECT_FALSE(device.MapPages(range, MiB(40), MiB(20)));
  this->ExpectFree(free);
  EXPECT_TRUE(device.MapPages(range, MiB(40), MiB(20)));
  device.UnmapPages(range, MiB(40), MiB(20));
  device.FailNext(5);
  device.FailNext(0);  // replaces
  const std::optional<Address> a = device.AllocateSegment(MiB(2));
  ASSERT_TRUE(a.has_value());
  device.FreeSegment(*a, MiB(2));
  device.ReleaseRange(range, MiB(40));
}

TYPED_TEST_P(DeviceContractTest, PagesComeAndGoInsideAReservation) {
  Device& device = *this->device_;
  const Bytes free = device.FreeMemory();
  const Address a = *device.ReserveRange(MiB(80));
  const Address b = *device.ReserveRange(MiB(80));
  EXPECT_TRUE(a + MiB(80) <= b || b + MiB(80) <= a);
  this->ExpectFree(free);
  ASSERT_TRUE(device.MapPages(a, MiB(60), MiB(20)));
  this->ExpectFree(free - MiB(60));
  device.UnmapPages(a + MiB(20), MiB(20), MiB(20));
  this->ExpectFree(free - MiB(40));
  ASSERT_TRUE(device.MapPages(a + MiB(20), MiB(20), MiB(20)));
  ASSERT_TRUE(device.MapPages(b, MiB(6), MiB(2)));
  this->ExpectFree(free - MiB(66));
  device.UnmapPages(a, MiB(60), MiB(20));
  device.UnmapPages(b, MiB(6), MiB(2));
  this->ExpectFree(free);
  device.ReleaseRange(a, MiB(80));
  device.ReleaseRange(b, MiB(80));
}

TYPED_TEST_P(DeviceContractTest, FailedMappingLeavesNothing) {
  Device& device = *this->device_;
  const Bytes free = device.FreeMemory();
  const Bytes too_much = RoundUp(device.TotalMemory(), MiB(20)) + MiB(40);
  const Address range = *device.ReserveRange(too_much);
  EXPECT_FALSE(device.MapPages(range, too_much, MiB(20)));
  this->ExpectFree(free);
  ASSERT_TRUE(device.MapPages(range, MiB(20), MiB(20)));
  device.UnmapPages(range, MiB(20), MiB(20));
  device.ReleaseRange(range, too_much);
}

TYPED_TEST_P(DeviceContractTest, StreamEventsComplete) {
  Device& device = *this->device_;
  const StreamEvent first = device.RecordEvent(1);
  const StreamEvent second = device.RecordEvent(1);
  const StreamEvent other = device.RecordEvent(2);
  EXPECT_EQ(first.stream, 1u);
  EXPECT_EQ(second.ticket, first.ticket + 1);
  EXPECT_EQ(other.stream, 2u);
  device.Synchronize(second);
  EXPECT_TRUE(device.IsComplete(first));
  EXPECT_TRUE(device.IsComplete(second));
  device.Synchronize(other);
  EXPECT_TRUE(device.IsComplete(other));
}

TYPED_TEST_P(DeviceContractTest, ExplicitCompletionWaitsForTheProgram) {
  const std::unique_ptr<Device> device = TypeParam::Make(MiB(64), /*explicit_completion=*/true);
  if (device == nullptr) GTEST_SKIP() << "streams cannot be held back here";
  const StreamEvent a = device->RecordEvent(1);
  const StreamEvent b = device->RecordEvent(1);
  const StreamEvent other = device->RecordEvent(2);
  EXPECT_FALSE(device->IsComplete(a));
  device->Synchronize(a);
  EXPECT_TRUE(device->IsComplete(a));
  EXPECT_FALSE(device->IsComplete(b));
  device->StreamDone(1);
  EXPECT_TRUE(device->IsComplete(b));
  EXPECT_FALSE(device->IsComplete(other));
  const StreamEvent late = device->RecordEvent(1);
  EXPECT_FALSE(device->IsComplete(late));
  device->StreamDone(2);
  EXPECT_TRUE(device->IsComplete(other));
  EXPECT_FALSE(device->IsComplete(late));
}

REGISTER_TYPED_TEST_SUITE_P(DeviceContractTest, MemoryIsCountedAndComesBack,
                            SegmentsAreApartAndAligned, OutOfMemoryIsAnAnswer,
                            InjectedFailuresHitSegmentsAndPages, PagesComeAndGoInsideAReservation,
                            FailedMappingLeavesNothing, StreamEventsComplete,
                            ExplicitCompletionWaitsForTheProgram);

}  // namespace memreplay
