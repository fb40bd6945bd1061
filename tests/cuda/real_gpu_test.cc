// Runs the contract of a Device on the GPU of this machine, or is skipped, with a line, if there is
// none.
#include <deque>
#include <memory>

#include "cuda/cuda_device.h"
#include "cuda/verify.h"
#include "gtest/gtest.h"
#include "tests/sim/support/device_contract.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Null if there is no GPU here. It lives until the process ends, after all devices on it.
CudaContext* RealContext() {
  static CudaContext* const context = []() -> CudaContext* {
    auto driver = CudaDriver::Open();
    if (!driver.ok()) {
      GTEST_LOG_(INFO) << ToStd(driver.status().message());
      return nullptr;
    }
    auto made = CudaContext::Create(*driver->release(), 0);
    if (!made.ok()) {
      GTEST_LOG_(INFO) << ToStd(made.status().message());
      return nullptr;
    }
    return made->release();
  }();
  return context;
}

struct RealWhole {
  static constexpr bool kExactFreeMemory = false;  // others may use the card
  static std::unique_ptr<Device> Make(Bytes, bool explicit_completion) {
    if (RealContext() == nullptr) return nullptr;
    auto device = CudaDevice::Create(*RealContext(), {.explicit_completion = explicit_completion});
    return device.ok() ? *std::move(device) : nullptr;
  }
};
template <CapacityBy by>
struct RealSmall {
  static constexpr bool kExactFreeMemory = false;
  static std::unique_ptr<Device> Make(Bytes memory, bool explicit_completion) {
    if (RealContext() == nullptr) return nullptr;
    auto device = CudaDevice::Create(
        *RealContext(), {.capacity = memory, .by = by, .explicit_completion = explicit_completion});
    return device.ok() ? *std::move(device) : nullptr;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Real, DeviceContractTest, RealWhole);
INSTANTIATE_TYPED_TEST_SUITE_P(RealByLimit, DeviceContractTest, RealSmall<CapacityBy::kLimit>);
INSTANTIATE_TYPED_TEST_SUITE_P(RealByBallast, DeviceContractTest, RealSmall<CapacityBy::kBallast>);

TEST(RealGpuTest, KernelsFindAnOverlap) {
  if (RealContext() == nullptr) GTEST_SKIP() << "no GPU here";
  const auto verifier = BlockVerifier::Create(*RealContext());
  ASSERT_TRUE(verifier.ok()) << ToStd(verifier.status().message());
  const auto device = CudaDevice::Create(*RealContext(), {});
  ASSERT_TRUE(device.ok());
  const Address segment = *(*device)->AllocateSegment(MiB(64));
  Event event;
  event.kind = EventKind::kAlloc;
  event.id = 0;
  event.address = segment;
  event.size = MiB(40) + Bytes(3);
  (*verifier)->OnEvent(event);
  event.id = 1;
  event.address = segment + MiB(39);
  event.size = MiB(4);
  (*verifier)->OnEvent(event);
  (*verifier)->CheckLive();
  EXPECT_TRUE(RealContext()->status().ok()) << ToStd(RealContext()->status().message());
  EXPECT_EQ((*verifier)->blocks_checked(), 2u);
  ASSERT_EQ((*verifier)->bad_blocks(), 1u);
  EXPECT_EQ((*verifier)->bad()[0].id, 0u);
  EXPECT_EQ((*verifier)->bad()[0].offset, MiB(39));
  EXPECT_EQ((*verifier)->bad()[0].written_by, 1u);
}

}  // namespace
}  // namespace memreplay
