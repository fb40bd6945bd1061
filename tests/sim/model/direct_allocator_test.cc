#include "sim/model/direct_allocator.h"

#include <memory>

#include "gtest/gtest.h"
#include "tests/sim/support/allocator_contract.h"

namespace memreplay {
namespace {

struct DirectTraits {
  static std::unique_ptr<Allocator> Make(Device& device) {
    return std::make_unique<DirectAllocator>(device);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Direct, AllocatorContractTest, DirectTraits);

TEST(DirectAllocatorTest, ReservesExactlyWhatIsAllocated) {
  SimulatedDevice device(MiB(100));
  DirectAllocator allocator(device, {.streams = {StreamHandle(0), StreamHandle(0x55)}});
  UsageObserver usage;
  Event request;
  request.kind = EventKind::kAlloc;
  request.id = 3;
  request.size = Bytes(1000);
  request.stream = 1;
  ASSERT_TRUE(allocator.Apply(request, usage).ok());
  EXPECT_EQ(usage.current().reserved(), Bytes(1000));
  EXPECT_EQ(usage.current().allocated(), Bytes(1000));
  EXPECT_EQ(device.FreeMemory(), MiB(98));  // the device rounds, not the allocator
  const MemoryState segments = allocator.Segments();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].stream, StreamHandle(0x55));
  EXPECT_EQ(segments[0].blocks[0].id, 3u);
}

}  // namespace
}  // namespace memreplay
