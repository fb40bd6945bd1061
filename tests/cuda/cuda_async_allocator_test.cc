#include "cuda/cuda_async_allocator.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

class Events final : public Observer {
 public:
  void OnEvent(const Event& event) override {
    kinds.push_back(event.kind);
    last = event;
  }
  std::vector<EventKind> kinds;
  Event last;
};

class CudaAsyncAllocatorTest : public testing::Test {
 protected:
  void Open(const CudaDeviceOptions& options) {
    device_ = *CudaDevice::Create(*context_, options);
    allocator_ = *CudaAsyncAllocator::Create(*device_);
  }
  void TearDown() override {
    allocator_.reset();
    device_.reset();
    context_.reset();
    EXPECT_EQ(fake_.Leaks(), "");
  }
  // The kinds of events it emits.
  std::vector<EventKind> Ask(EventKind kind, AllocationId id = kNoAllocation, Bytes size = Bytes(0),
                             uint32_t stream = 0) {
    Event request;
    request.kind = kind;
    request.id = id;
    request.size = size;
    request.stream = stream;
    events_.kinds.clear();
    EXPECT_TRUE(allocator_->Apply(request, events_).ok());
    allocator_->CheckInvariants();
    return events_.kinds;
  }
  int64_t Reserved() const { return allocator_->statistics().reserved_bytes.all.current(); }
  int64_t Allocated() const { return allocator_->statistics().allocated_bytes.all.current(); }

  FakeDriver fake_{GiB(1)};
  std::unique_ptr<CudaContext> context_ = fake_.NewContext();
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaAsyncAllocator> allocator_;
  Events events_;
};

using Kinds = std::vector<EventKind>;

TEST_F(CudaAsyncAllocatorTest, CountsWhatTheDriverSaysOfItsPool) {
  Open({});
  EXPECT_EQ(Ask(EventKind::kAlloc, 0, MiB(40) - Bytes(1)),
            (Kinds{EventKind::kSegmentMap, EventKind::kAlloc}));
  EXPECT_EQ(events_.last.block_size, MiB(40) - Bytes(1));
  EXPECT_EQ(Reserved(), MiB(64).signed_value());
  EXPECT_EQ(Allocated(), MiB(40).signed_value());  // the driver rounds
  EXPECT_EQ(device_->held(), MiB(64));
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(20)), (Kinds{EventKind::kAlloc}));
  EXPECT_EQ(Ask(EventKind::kFree, 0), (Kinds{EventKind::kFree, EventKind::kFreeCompleted}));
  EXPECT_EQ(Reserved(), MiB(64).signed_value());  // kept, whatever is freed
  EXPECT_EQ(Ask(EventKind::kEmptyCache), (Kinds{EventKind::kEmptyCache, EventKind::kSegmentUnmap}));
  EXPECT_EQ(Reserved(), MiB(32).signed_value());
  EXPECT_EQ(Allocated(), MiB(20).signed_value());
  EXPECT_EQ(allocator_->PeakReserved(), MiB(64));
  EXPECT_EQ(allocator_->PeakUsed(), MiB(60));
  EXPECT_EQ(allocator_->statistics().allocated_bytes.all.peak, MiB(60).signed_value());
  EXPECT_EQ(Ask(EventKind::kAlloc, 2, Bytes(0)), Kinds{});
  EXPECT_EQ(Ask(EventKind::kFree, 2), Kinds{});
}

TEST_F(CudaAsyncAllocatorTest, AFreeWaitsForOtherStreams) {
  Open({});
  Ask(EventKind::kAlloc, 0, MiB(2), 1);
  Ask(EventKind::kAlloc, 1, MiB(2), 1);
  Ask(EventKind::kRecordStream, 0, Bytes(0), 2);
  Ask(EventKind::kRecordStream, 0, Bytes(0), 2);
  Ask(EventKind::kRecordStream, 0, Bytes(0), 1);  // its own
  Ask(EventKind::kFree, 1);
  EXPECT_EQ(fake_.Calls("cuStreamWaitEvent"), 0u);
  Ask(EventKind::kFree, 0);
  EXPECT_EQ(fake_.Calls("cuStreamWaitEvent"), 2u);
  EXPECT_EQ(fake_.Held().events, 0u);
}

TEST_F(CudaAsyncAllocatorTest, TheDriverRunsOutOfMemory) {
  Open({.capacity = MiB(128), .by = CapacityBy::kBallast});
  Ask(EventKind::kAlloc, 0, MiB(100));
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(30)), (Kinds{EventKind::kOom}));
  EXPECT_EQ(events_.last.address.value(), 0u);  // free bytes: the pool has all four steps
  EXPECT_EQ(device_->refusals().last, Refusal::kDriver);
  EXPECT_EQ(allocator_->ooms(), 1);
  Ask(EventKind::kFree, 0);
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(30)), (Kinds{EventKind::kAlloc}));
}

TEST_F(CudaAsyncAllocatorTest, LimitsAndInjectedFailures) {
  Open({.capacity = MiB(128)});
  Ask(EventKind::kAlloc, 0, MiB(100));
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(30)), (Kinds{EventKind::kOom}));
  EXPECT_EQ(device_->refusals().last, Refusal::kLimit);
  EXPECT_TRUE(allocator_->SetMemoryFraction(0.8).ok());
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(3)), (Kinds{EventKind::kOom}));
  EXPECT_TRUE(allocator_->SetMemoryFraction(1).ok());
  EXPECT_FALSE(allocator_->SetMemoryFraction(1.1).ok());
  Ask(EventKind::kFree, 0);
  Ask(EventKind::kEmptyCache);
  Ask(EventKind::kFailNext, kNoAllocation, Bytes(1));
  EXPECT_EQ(Ask(EventKind::kAlloc, 1, MiB(3)), (Kinds{EventKind::kOom}));
  EXPECT_EQ(device_->refusals().last, Refusal::kInjected);
  EXPECT_EQ(Ask(EventKind::kAlloc, 2, MiB(3)), (Kinds{EventKind::kSegmentMap, EventKind::kAlloc}));
}

TEST_F(CudaAsyncAllocatorTest, LeavesThePoolAsItWas) {
  Open({});
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(context_->api().cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  const auto threshold = [&] {
    cuuint64_t value = 0;
    EXPECT_EQ(
        context_->api().cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value),
        CUDA_SUCCESS);
    return value;
  };
  EXPECT_EQ(threshold(), ~cuuint64_t{0});
  Ask(EventKind::kAlloc, 0, MiB(100));
  allocator_.reset();
  EXPECT_EQ(threshold(), 0u);
  EXPECT_EQ(device_->held(), Bytes(0));
}

}  // namespace
}  // namespace memreplay
