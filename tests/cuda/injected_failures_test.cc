// Runs one schedule that uses everything of cuda/, once for every driver call that it makes, with
// that call failing.
#include <optional>
#include <string>
#include <vector>

#include "cuda/cuda_async_allocator.h"
#include "cuda/cuda_device.h"
#include "cuda/verify.h"
#include "gtest/gtest.h"
#include "sim/model/observer.h"
#include "tests/cuda/fake_driver/fake_driver.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

Event Request(EventKind kind, AllocationId id, Bytes size = Bytes(0), uint32_t stream = 0) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.size = size;
  event.stream = stream;
  return event;
}

void UseDevice(CudaDevice& device, BlockVerifier& verifier) {
  const auto a = device.AllocateSegment(MiB(20));
  const auto b = device.AllocateSegment(MiB(2));
  if (a.has_value()) {
    Event event = Request(EventKind::kAlloc, 7, MiB(20), 1);
    event.address = *a;
    verifier.OnEvent(event);
    event.kind = EventKind::kFree;
    verifier.OnEvent(event);
    device.FreeSegment(*a, MiB(20));
  }
  const std::optional<Address> range = device.ReserveRange(MiB(40));
  const std::optional<Address> other = device.ReserveRange(MiB(40));
  if (range.has_value() && device.MapPages(*range, MiB(8), MiB(2))) {
    device.UnmapPages(*range + MiB(2), MiB(4), MiB(2));
  }
  if (other.has_value()) device.MapPages(*other, MiB(40), MiB(20));
  if (const std::optional<Address> small = device.ReserveRange(MiB(2)); small.has_value()) {
    device.ReleaseRange(*small, MiB(2));
  }
  const StreamEvent first = device.RecordEvent(1);
  device.Synchronize(device.RecordEvent(2));
  device.IsComplete(first);
  device.TakeOutside(MiB(10));
  device.ReturnOutside(MiB(4));
  device.FreeMemory();
  if (b.has_value()) device.FreeSegment(*b, MiB(2));
  // The destructors do the rest.
}

void UseAllocator(CudaAsyncAllocator& allocator, Observer& observer) {
  for (const Event& request :
       {Request(EventKind::kAlloc, 1, MiB(50)), Request(EventKind::kAlloc, 2, MiB(3), 1),
        Request(EventKind::kRecordStream, 1, Bytes(0), 1), Request(EventKind::kFree, 1),
        Request(EventKind::kEmptyCache, kNoAllocation), Request(EventKind::kAlloc, 3, Bytes(10))}) {
    EXPECT_TRUE(allocator.Apply(request, observer).ok());
  }
}

// Returns the first error: of making something, or of the driver while it was used.
absl::Status UseEverything(const CudaDriver& driver) {
  const auto context = CudaContext::Create(driver, 0);
  if (!context.ok()) return context.status();
  const auto verifier = BlockVerifier::Create(**context);
  if (!verifier.ok()) return verifier.status();
  {
    const auto device = CudaDevice::Create(
        **context, {.capacity = MiB(300), .by = CapacityBy::kBallast, .explicit_completion = true});
    if (!device.ok()) return device.status();
    UseDevice(**device, **verifier);
    const auto allocator = CudaAsyncAllocator::Create(**device);
    if (!allocator.ok()) return allocator.status();
    ObserverList nobody;
    UseAllocator(**allocator, nobody);
  }
  return (*context)->status();
}

std::vector<std::string> EntryPoints() {
  return {
#define MEMREPLAY_NAME(name) #name,
      MEMREPLAY_CUDA_ENTRY_POINTS(MEMREPLAY_NAME)
#undef MEMREPLAY_NAME
  };
}

// These calls end something the driver made: their answer comes too late for anybody to act on, and
// the fake does not let them fail.
bool IsEnd(const std::string& name) {
  return name == "cuDevicePrimaryCtxRelease" || name == "cuStreamDestroy" ||
         name == "cuEventDestroy" || name == "cuModuleUnload" || name == "cuMemFreeHost";
}

// These belong to the driver's start, or this schedule never calls them.
bool IsElsewhere(const std::string& name) {
  return name == "cuInit" || name == "cuDriverGetVersion" || name == "cuDeviceGetCount" ||
         name == "cuGetErrorName" || name == "cuGetErrorString" || name == "cuMemcpyDtoH";
}

// Some of these mean "no memory" by such an answer, which is no error.
bool MayRunOut(const std::string& name) {
  return name == "cuMemAlloc" || name == "cuMemCreate" || name == "cuMemMap" ||
         name == "cuMemSetAccess" || name == "cuMemAllocAsync";
}

TEST(InjectedFailuresTest, NothingLeaksAndTheMessageNamesTheCall) {
  const FakeDriver fake(GiB(1));
  ASSERT_EQ(UseEverything(fake.driver()), absl::OkStatus());
  ASSERT_EQ(fake.Leaks(), "");
  int injected = 0;
  for (const std::string& name : EntryPoints()) {
    if (IsEnd(name) || IsElsewhere(name)) continue;
    const FakeDriver counting(GiB(1));
    ASSERT_TRUE(UseEverything(counting.driver()).ok());
    const uint64_t calls = counting.Calls(name);
    EXPECT_GT(calls, 0u) << name << " is not called by this test";
    for (uint64_t nth = 1; nth <= calls; ++nth) {
      for (const CUresult code : {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY}) {
        SCOPED_TRACE(StrCat("call ", nth, " of ", name, " fails with ", static_cast<int>(code)));
        const FakeDriver broken(GiB(1));
        broken.Fail(name, nth, code);
        const absl::Status status = UseEverything(broken.driver());
        EXPECT_EQ(broken.Leaks(), "");
        ++injected;
        const bool is_answer = code == CUDA_ERROR_OUT_OF_MEMORY && MayRunOut(name);
        if (is_answer) {
          EXPECT_EQ(status, absl::OkStatus());
        } else if (status.ok()) {
          // This holds only for the last of the destructors' calls, after which nobody is left to
          // report to.
          EXPECT_TRUE(name == "cuMemPoolTrimTo" || name == "cuMemPoolSetAttribute" ||
                      name == "cuCtxSynchronize")
              << "no error was reported";
          EXPECT_EQ(nth, calls);
        } else {
          EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
        }
      }
    }
  }
  EXPECT_GT(injected, 200);
  RecordProperty("injected", injected);
}

}  // namespace
}  // namespace memreplay
