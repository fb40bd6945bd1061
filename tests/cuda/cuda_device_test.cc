#include "cuda/cuda_device.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "tests/sim/support/device_contract.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using testing::HasSubstr;

std::unique_ptr<CudaDevice> MakeDevice(CudaContext& context, const CudaDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Create(context, options);
  EXPECT_TRUE(device.ok()) << ToStd(device.status().message());
  return device.ok() ? *std::move(device) : nullptr;
}

// Runs the contract on the GPU as it is and as a smaller one in both ways. The fake outlives the
// devices that the contract makes and destroys.
std::unique_ptr<Device> OnFake(bool whole, CapacityBy by, Bytes memory, bool explicit_completion) {
  static const FakeDriver fake(GiB(1));
  static auto* const contexts = new std::deque<std::unique_ptr<CudaContext>>;
  CudaDeviceOptions options = {.by = by, .explicit_completion = explicit_completion};
  if (!whole) options.capacity = memory;
  contexts->push_back(fake.NewContext());
  return MakeDevice(*contexts->back(), options);
}

struct WholeCard {
  static constexpr bool kExactFreeMemory = true;
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return OnFake(true, CapacityBy::kLimit, memory, explicit_completion);
  }
};
struct ByLimit {
  static constexpr bool kExactFreeMemory = true;
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return OnFake(false, CapacityBy::kLimit, memory, explicit_completion);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaWhole, DeviceContractTest, WholeCard);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaLimit, DeviceContractTest, ByLimit);

// Two devices at once, as the contract makes them, cannot both leave so much free: the second one's
// ballast is the first one's loss.
struct ByBallast {
  static constexpr bool kExactFreeMemory = true;
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    return OnFake(false, CapacityBy::kBallast, memory, explicit_completion);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaBallast, DeviceContractTest, ByBallast);

class CudaDeviceTest : public testing::Test {
 protected:
  void Open(const CudaDeviceOptions& options) { device_ = MakeDevice(*context_, options); }
  void TearDown() override {
    device_.reset();
    context_.reset();
    EXPECT_EQ(fake_.Leaks(), "");
  }

  FakeDriver fake_{GiB(1)};
  std::unique_ptr<CudaContext> context_ = fake_.NewContext();
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceTest, BallastMakesTheDriverRefuse) {
  Open({.capacity = MiB(100), .by = CapacityBy::kBallast});
  EXPECT_EQ(device_->ballast(), MiB(924));
  EXPECT_EQ(device_->TotalMemory(), MiB(100));
  EXPECT_EQ(device_->FreeMemory(), MiB(100));
  EXPECT_EQ(device_->DriverUsed(), Bytes(0));
  const auto a = device_->AllocateSegment(MiB(60));
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(device_->DriverUsed(), MiB(60));
  EXPECT_FALSE(device_->AllocateSegment(MiB(60)).has_value());
  EXPECT_EQ(device_->refusals().last, Refusal::kDriver);
  EXPECT_EQ(device_->refusals().of(Refusal::kDriver), 1u);
  EXPECT_TRUE(device_->status().ok());
}

TEST_F(CudaDeviceTest, LimitRefusesBeforeTheDriverIsAsked) {
  Open({.capacity = MiB(100)});
  EXPECT_EQ(device_->ballast(), Bytes(0));
  ASSERT_TRUE(device_->AllocateSegment(MiB(60)).has_value());
  const uint64_t asked = fake_.Calls("cuMemAlloc");
  EXPECT_FALSE(device_->AllocateSegment(MiB(60)).has_value());
  EXPECT_EQ(device_->refusals().last, Refusal::kLimit);
  EXPECT_EQ(fake_.Calls("cuMemAlloc"), asked);
  EXPECT_EQ(device_->FreeMemory(), MiB(40));
  EXPECT_EQ(fake_.Held().free_bytes, (GiB(1) - MiB(60)).value());
}

TEST_F(CudaDeviceTest, RefusalsAreToldApart) {
  Open({.capacity = MiB(100)});
  device_->FailNext(1);
  EXPECT_FALSE(device_->AllocateSegment(MiB(2)).has_value());
  EXPECT_EQ(device_->refusals().last, Refusal::kInjected);
  fake_.TakeExternal(GiB(1));  // another process takes the card
  EXPECT_FALSE(device_->AllocateSegment(MiB(2)).has_value());
  EXPECT_EQ(device_->refusals().last, Refusal::kDriver);
  fake_.TakeExternal(Bytes(0) - GiB(1));
  fake_.Fail("cuMemAlloc", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_FALSE(device_->AllocateSegment(MiB(2)).has_value());
  EXPECT_EQ(device_->refusals().last, Refusal::kFailed);
  EXPECT_THAT(std::string(ToStd(device_->status().message())),
              HasSubstr("cuMemAlloc of 2097152 bytes: CUDA_ERROR_UNKNOWN"));
  // From then on nothing is queried any more.
  const uint64_t asked = fake_.Calls("cuMemAlloc");
  EXPECT_FALSE(device_->AllocateSegment(MiB(2)).has_value());
  EXPECT_EQ(fake_.Calls("cuMemAlloc"), asked);
  EXPECT_EQ(device_->refusals().of(Refusal::kFailed), 2u);
}

TEST_F(CudaDeviceTest, CapacityMustBeThere) {
  fake_.TakeExternal(MiB(600));
  const auto device = CudaDevice::Create(*context_, {.capacity = MiB(500)});
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ToStd(device.status().message())),
              testing::AllOf(HasSubstr("524288000"), HasSubstr("444596224 bytes are free")));
  fake_.TakeExternal(Bytes(0) - MiB(600));
}

TEST_F(CudaDeviceTest, FailedMappingLeavesEverythingUsable) {
  Open({.capacity = MiB(100), .by = CapacityBy::kBallast});
  const Address range = *device_->ReserveRange(MiB(200));
  // The driver itself has no memory for the sixth page, or for mapping the second, or for giving
  // access to the third. All of it is an out of memory, and no error.
  EXPECT_FALSE(device_->MapPages(range, MiB(120), MiB(20)));
  fake_.Fail("cuMemMap", 2, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(device_->MapPages(range, MiB(80), MiB(20)));
  fake_.Fail("cuMemSetAccess", 3, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(device_->MapPages(range, MiB(80), MiB(20)));
  EXPECT_EQ(device_->refusals().of(Refusal::kDriver), 3u);
  EXPECT_TRUE(device_->status().ok());
  EXPECT_EQ(fake_.Held().mappings, 0u);
  EXPECT_EQ(device_->FreeMemory(), MiB(100));
  ASSERT_TRUE(device_->MapPages(range, MiB(100), MiB(20)));
  device_->UnmapPages(range + MiB(20), MiB(40), MiB(20));
  EXPECT_EQ(device_->FreeMemory(), MiB(40));
  ASSERT_TRUE(device_->AllocateSegment(MiB(40)).has_value());
  EXPECT_FALSE(device_->MapPages(range + MiB(20), MiB(20), MiB(20)));
}

TEST_F(CudaDeviceTest, OutsideMemoryIsReal) {
  Open({.capacity = MiB(100)});
  device_->TakeOutside(MiB(30) + Bytes(1));
  EXPECT_EQ(fake_.Held().free_bytes, (GiB(1) - MiB(32)).value());
  EXPECT_EQ(device_->FreeMemory(), MiB(70) - Bytes(1));
  device_->ReturnOutside(MiB(10));
  EXPECT_EQ(fake_.Held().free_bytes, (GiB(1) - MiB(22)).value());
  device_->TakeOutside(GiB(4));  // as much as there is
  EXPECT_EQ(fake_.Held().free_bytes, 0u);
  EXPECT_EQ(device_->FreeMemory(), Bytes(0));
  EXPECT_TRUE(device_->status().ok());
  device_->ReturnOutside(GiB(9));
  EXPECT_EQ(fake_.Held().free_bytes, GiB(1).value());
}

TEST_F(CudaDeviceTest, GivesEverythingBackAtAnyTime) {
  Open({.capacity = MiB(300), .by = CapacityBy::kBallast});
  ASSERT_TRUE(device_->AllocateSegment(MiB(20)).has_value());
  const Address range = *device_->ReserveRange(MiB(100));
  ASSERT_TRUE(device_->MapPages(range, MiB(40), MiB(2)));
  device_->TakeOutside(MiB(5));
  EXPECT_TRUE(device_->ReleaseEverything().ok());
  const FakeDriverHeld held = fake_.Held();
  EXPECT_EQ(held.segments + held.pages + held.mappings + held.ranges, 0u);
  EXPECT_EQ(held.free_bytes, GiB(1).value());
  EXPECT_TRUE(device_->ReleaseEverything().ok());
}

TEST_F(CudaDeviceTest, EventsAreUsedAgain) {
  Open({});
  for (int i = 0; i < 10000; ++i) {
    const StreamEvent event = device_->RecordEvent(static_cast<uint32_t>(i % 3));
    if (i % 2 == 0) {
      EXPECT_TRUE(device_->IsComplete(event));
    }
  }
  EXPECT_EQ(fake_.Calls("cuEventRecord"), 10000u);
  EXPECT_LE(fake_.Held().events, 3 * 1024u);
}

TEST_F(CudaDeviceTest, MisuseStopsTheProcess) {
  Open({});
  const Address a = *device_->AllocateSegment(MiB(20));
  EXPECT_DEATH(device_->FreeSegment(a + MiB(2), MiB(18)), "no segment");
  EXPECT_DEATH(device_->FreeSegment(a, MiB(2)), "another size");
  EXPECT_DEATH(device_->ReleaseRange(a, MiB(20)), "not reserved");
  EXPECT_DEATH(device_->UnmapPages(a, MiB(40), MiB(20)), "not mapped");
}

}  // namespace
}  // namespace memreplay
