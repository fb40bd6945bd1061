// A real GPU below an allocator: every request becomes driver calls.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_context.h"
#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// The recorded events of all streams, which complete when the caller says so. An event is complete
// as soon as it is recorded or, with `explicit_completion`, when the caller says so by
// Synchronize() or Done(). Before reporting that an event is complete, the object waits until the
// GPU has reached it. Each event is one cuEventRecord; the driver's event objects are reused.
class StreamProgress {
 public:
  StreamProgress(CudaContext& context, bool explicit_completion)
      : context_(context), explicit_completion_(explicit_completion) {}
  ~StreamProgress();
  StreamProgress(const StreamProgress&) = delete;
  StreamProgress& operator=(const StreamProgress&) = delete;

  StreamEvent Record(uint32_t stream);
  bool IsComplete(const StreamEvent& event);
  void Synchronize(const StreamEvent& event);
  void Done(uint32_t stream);

 private:
  struct Pending {
    uint64_t ticket;
    CUevent event;
  };
  struct Stream {
    uint64_t recorded = 0;        // tickets returned
    uint64_t completed = 0;       // tickets up to here are complete for the caller
    uint64_t waited = 0;          // tickets up to here are complete on the GPU
    std::deque<Pending> pending;  // by ticket
  };
  Stream& At(uint32_t stream);
  // Waits until the GPU has reached a ticket. A stream's work completes in order, so all earlier
  // events are complete too.
  void WaitFor(Stream& stream, uint64_t ticket);

  CudaContext& context_;
  const bool explicit_completion_;
  std::vector<Stream> streams_;
  std::vector<CUevent> spare_;
};

// How a large GPU is made to behave like a small one.
enum class CapacityBy : uint8_t {
  // By arithmetic: a request that would exceed the capacity, counted in whole units of 2 MiB as in
  // SimulatedDevice, is refused without a driver call.
  kLimit,
  // By allocation: held pages take everything but the capacity, so that the driver itself refuses,
  // and the memory that the driver needs for itself counts.
  kBallast,
};

// How much of a GPU a device may use, and how it fails.
struct CudaDeviceOptions {
  std::optional<Bytes> capacity = std::nullopt;  // nullopt: the whole GPU
  CapacityBy by = CapacityBy::kLimit;
  // As in SimulatedDevice: recorded stream work is pending until StreamDone() or Synchronize()
  // instead of completing at once.
  bool explicit_completion = false;
};

// Why the device reported that memory is exhausted.
enum class Refusal : uint8_t {
  kDriver,    // CUDA_ERROR_OUT_OF_MEMORY from the driver
  kLimit,     // CapacityBy::kLimit, or a request larger than the GPU
  kInjected,  // FailNext()
  kFailed,    // nothing is granted after an error; see status()
};

// The refused requests.
struct Refusals {
  std::array<uint64_t, 4> by = {};  // reason
  std::optional<Refusal> last;
  uint64_t of(Refusal why) const { return by[static_cast<size_t>(why)]; }
};

// A GPU's memory, requested from the driver. Segments are cuMemAlloc and cuMemFree; pages are
// created, mapped and made accessible one by one, and unmapped and released one by one. A driver
// error other than out of memory is kept in status(), and nothing is granted after it; the caller
// checks after each request, or at the end. Freeing still works.
//
// Stream work is real, but the caller decides when it completes: a recorded event is complete at
// once or when the caller says so, exactly as on SimulatedDevice, and the device waits until the
// GPU has reached it too. So decisions do not depend on the GPU's speed.
class CudaDevice final : public Device {
 public:
  // Creates a device on `context`, which must outlive it. Other objects on the context (a
  // BlockVerifier) should be created first, so that a ballast accounts for them. Errors: the
  // capacity is not free on the GPU now (the message has both numbers), or an earlier error of the
  // context.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(CudaContext& context,
                                                            const CudaDeviceOptions& options);
  // Releases everything that is still held.
  ~CudaDevice() override;

  // Returns the capacity if one is set.
  Bytes TotalMemory() const override { return total_; }
  Bytes FreeMemory() override;
  std::optional<Address> AllocateSegment(Bytes size) override;
  void FreeSegment(Address address, Bytes size) override;
  std::optional<Address> ReserveRange(Bytes size) override;
  void ReleaseRange(Address address, Bytes size) override;
  bool MapPages(Address address, Bytes size, Bytes page) override;
  void UnmapPages(Address address, Bytes size, Bytes page) override;
  StreamEvent RecordEvent(uint32_t stream) override { return streams_.Record(stream); }
  bool IsComplete(const StreamEvent& event) override { return streams_.IsComplete(event); }
  void Synchronize(const StreamEvent& event) override;
  void StreamDone(uint32_t stream) override { streams_.Done(stream); }
  void FailNext(uint64_t count) override { failures_ = count; }
  // Take and release real memory, in whole pages, as far as the GPU has it.
  void TakeOutside(Bytes size) override;
  void ReturnOutside(Bytes size) override;

  CudaContext& context() const { return context_; }
  const absl::Status& status() const { return context_.status(); }
  const Refusals& refusals() const { return refusals_; }
  const DeviceCalls& calls() const { return calls_; }
  // Returns the used bytes of the GPU as the driver counts them, by all processes but without the
  // ballast: (total - free) - ballast.
  Bytes DriverUsed();
  Bytes ballast() const { return ballast_.size(); }
  // Returns the size of the segments and pages now held, each in whole units of 2 MiB.
  Bytes held() const { return used_; }

  // Returns whether `units` more bytes may be requested, for allocators that call the driver
  // themselves. They may not after an error, an injected failure, or beyond the limit.
  bool Admit(Bytes units);
  // Returns whether a call succeeded. Out of memory counts as a refusal by the driver; any other
  // error goes to status(). `address` may be null.
  bool Granted(CUresult result, DriverCall call, Address address, Bytes size);
  // Sets the size of a pool of the driver, which is part of held() from then on.
  void CountPool(Bytes reserved);

  // Releases everything: pages, ranges, segments, outside memory, ballast. Continues after an
  // error, keeps what could not be released for another try, and returns the first error. May be
  // called at any time and more than once; afterwards nothing that the device returned is valid.
  absl::Status ReleaseEverything();

 private:
  struct Page {
    Bytes size;
    CUmemGenericAllocationHandle handle = 0;
    bool is_mapped = false;
  };

  CudaDevice(CudaContext& context, const CudaDeviceOptions& options);

  bool Refuse(Refusal why);  // counts it and returns false
  bool MapPage(Address address, Bytes size);
  // Unmaps and releases a page; returns false and keeps the page if a step fails.
  bool DropPage(absl::btree_map<Address, Page>::iterator page);

  CudaContext& context_;
  const CudaDeviceOptions options_;
  const Bytes total_;
  Bytes used_;  // whole units of segments and pages, and the pool's
  Bytes pool_;
  Bytes outside_;  // as requested
  uint64_t failures_ = 0;
  Refusals refusals_;
  DeviceCalls calls_;
  StreamProgress streams_;
  HeldPages ballast_;
  HeldPages outside_pages_;
  absl::btree_map<Address, Bytes> segments_;
  absl::btree_map<Address, Bytes> ranges_;
  absl::btree_map<Address, Page> pages_;
};

// The sizes for which to measure the cost of driver calls, and how often.
struct DriverCostOptions {
  // Sizes of PyTorch's small and large segments, and of allocations with a segment of their own.
  std::vector<Bytes> segment_sizes = {MiB(2), MiB(20), MiB(64), MiB(256), MiB(1024)};
  std::vector<Bytes> page_sizes = {MiB(2), MiB(20)};  // of PyTorch's expandable segments
  int repeats = 50;
};

// Allocates `repeats` segments of each size, keeping them, then frees them all; likewise reserves a
// range, maps pages into it and unmaps them. The time of each call goes to the log of the device's
// context, whose medians are the costs; nothing else runs on the GPU, so that cuMemFree does not
// wait. If half of the free memory does not hold `repeats` segments or pages of a size, fewer are
// allocated, or none. Errors: those of the driver; no memory for even the smallest size of either.
absl::Status MeasureDriverCosts(CudaDevice& device, const DriverCostOptions& options = {});

}  // namespace memreplay
