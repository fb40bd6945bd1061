#include <gtest/gtest.h>

#include "sim/device/simulated_device.h"
#include "sim/model/async_allocator.h"
#include "sim/observe/usage.h"

namespace memreplay {
namespace {

Event Request(EventKind kind, AllocationId id, Bytes size = Bytes()) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.size = size;
  return event;
}

class CudaMallocAsyncTest : public testing::Test {
 protected:
  explicit CudaMallocAsyncTest(Bytes capacity = MiB(100)) : device_(capacity) {}

  void Do(EventKind kind, AllocationId id = kNoAllocation, Bytes size = Bytes()) {
    ASSERT_TRUE(allocator_.Apply(Request(kind, id, size), usage_).ok());
    allocator_.CheckInvariants();
  }
  int64_t reserved() const { return allocator_.statistics().reserved_bytes.all.current(); }
  int64_t allocated() const { return allocator_.statistics().allocated_bytes.all.current(); }

  SimulatedDevice device_;
  CudaMallocAsyncAllocator allocator_{device_};
  UsageObserver usage_;
};

TEST_F(CudaMallocAsyncTest, UsedBytesAreExactAndThePoolIsTheirHighWaterMark) {
  Do(EventKind::kAlloc, 0, Bytes(1000));
  EXPECT_EQ(allocated(), 1000);
  EXPECT_EQ(reserved(), MiB(32).signed_value());
  Do(EventKind::kAlloc, 1, MiB(40));
  EXPECT_EQ(reserved(), MiB(64).signed_value());
  Do(EventKind::kFree, 1);
  EXPECT_EQ(allocated(), 1000);
  EXPECT_EQ(reserved(), MiB(64).signed_value());
  Do(EventKind::kAlloc, 2, MiB(50));
  EXPECT_EQ(reserved(), MiB(64).signed_value());
  EXPECT_EQ(usage_.peak().reserved(), MiB(64));
}

TEST_F(CudaMallocAsyncTest, EmptyCacheTrimsThePool) {
  Do(EventKind::kAlloc, 0, MiB(1));
  Do(EventKind::kAlloc, 1, MiB(60));
  Do(EventKind::kFree, 1);
  Do(EventKind::kEmptyCache);
  EXPECT_EQ(reserved(), MiB(32).signed_value());
  EXPECT_EQ(device_.FreeMemory(), MiB(68));
}

TEST_F(CudaMallocAsyncTest, RunsOutAtTheDeviceAndAtTheLimit) {
  Do(EventKind::kAlloc, 0, MiB(97));  // 128 MiB of pool on a device of 100 MiB
  EXPECT_EQ(allocator_.ooms(), 1);
  EXPECT_EQ(allocator_.statistics().num_ooms, 0);  // as PyTorch reports this backend
  Do(EventKind::kFree, 0);                         // never came to be
  ASSERT_TRUE(allocator_.SetMemoryFraction(0.25).ok());
  Do(EventKind::kAlloc, 1, MiB(25));
  EXPECT_EQ(allocator_.ooms(), 1);
  Do(EventKind::kAlloc, 2, Bytes(1));
  EXPECT_EQ(allocator_.ooms(), 2);
  EXPECT_FALSE(allocator_.SetMemoryFraction(1.5).ok());
}

TEST_F(CudaMallocAsyncTest, TheBackendStays) {
  EXPECT_TRUE(allocator_.ApplySettings("max_split_size_mb:64").ok());
  EXPECT_FALSE(allocator_.ApplySettings("backend:native").ok());
}

}  // namespace
}  // namespace memreplay
