#include <memory>
#include <string>

#include "cuda/cuda_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

TEST(DriverCostsTest, MeasuresEachCallBySizeAndGivesAllBack) {
  const FakeDriver fake(GiB(2));
  {
    const auto context = fake.NewContext();
    const auto device = CudaDevice::Create(*context, {});
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(MeasureDriverCosts(**device, {.repeats = 10}), absl::OkStatus());
    const auto& rows = context->log().rows();
    for (const DriverCall call : {DriverCall::kMemAlloc, DriverCall::kMemFree}) {
      EXPECT_EQ(rows.at({call, MiB(2)}).calls, 10u);
      EXPECT_EQ(rows.at({call, MiB(64)}).calls, 10u);
      EXPECT_EQ(rows.at({call, MiB(256)}).calls, 4u);  // in half of what is free
      EXPECT_EQ(rows.at({call, MiB(1024)}).calls, 1u);
      EXPECT_EQ(rows.at({call, MiB(20)}).refused, 0u);
    }
    for (const DriverCall call : {DriverCall::kCreate, DriverCall::kMap, DriverCall::kSetAccess,
                                  DriverCall::kUnmap, DriverCall::kRelease}) {
      EXPECT_EQ(rows.at({call, MiB(2)}).calls, 10u);
      EXPECT_EQ(rows.at({call, MiB(20)}).calls, 10u);
    }
    EXPECT_EQ(fake.Held().free_bytes, GiB(2).value());
  }
  EXPECT_EQ(fake.Leaks(), "");
}

TEST(DriverCostsTest, NeedsSomeMemoryAndASoundDriver) {
  const FakeDriver fake(GiB(1));
  const auto context = fake.NewContext();
  const auto device = CudaDevice::Create(*context, {});
  ASSERT_TRUE(device.ok());
  fake.TakeExternal(GiB(1) - MiB(2));
  EXPECT_EQ(MeasureDriverCosts(**device).code(), absl::StatusCode::kResourceExhausted);
  fake.TakeExternal(Bytes(0) - GiB(1));
  fake.Fail("cuMemFree", 2, CUDA_ERROR_UNKNOWN);
  EXPECT_THAT(std::string(ToStd(MeasureDriverCosts(**device).message())),
              testing::HasSubstr("cuMemFree"));
}

}  // namespace
}  // namespace memreplay
