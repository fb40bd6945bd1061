// A real GPU under an allocator: every request becomes driver calls.
#ifndef MEMREPLAY_CUDA_CUDA_DEVICE_H_
#define MEMREPLAY_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_context.h"
#include "cuda/held_pages.h"
#include "cuda/stream_progress.h"
#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// How a big card is made to behave as a small one.
enum class CapacityBy : uint8_t {
  // Arithmetic: what would exceed the capacity, counted in whole units of 2 MiB
  // as SimulatedDevice counts, is refused before the driver is asked.
  kLimit,
  // All but the capacity is taken by pages of our own, so that it is the driver
  // that refuses. What the driver needs for itself shows.
  kBallast,
};

// How much of a GPU a device may use, and how it fails.
struct CudaDeviceOptions {
  std::optional<Bytes> capacity = std::nullopt;  // absent: the card as it is
  CapacityBy by = CapacityBy::kLimit;
  // As in SimulatedDevice: recorded stream work is pending until StreamDone() or
  // Synchronize(), instead of complete at once.
  bool explicit_completion = false;
};

// Why the device said that memory is exhausted.
enum class Refusal : uint8_t {
  kDriver,    // the driver did: CUDA_ERROR_OUT_OF_MEMORY
  kLimit,     // CapacityBy::kLimit, or more than the whole card has
  kInjected,  // FailNext()
  kFailed,    // nothing is granted after an error; see status()
};

// How many requests were refused, by what.
struct Refusals {
  uint64_t by_driver = 0;
  uint64_t by_limit = 0;
  uint64_t injected = 0;
  uint64_t after_failure = 0;
  std::optional<Refusal> last;
};

// Segments are cuMemAlloc and cuMemFree; pages are created, mapped and made
// accessible one by one, and unmapped and released one by one. Errors of the
// driver other than out of memory are remembered in status(), and from then on
// nothing is granted: the caller looks after each request, or at the end. What
// is freed is still freed.
//
// Stream work is real, but its completion is the program's: a recorded event is
// complete at once or when the program says so, exactly as on SimulatedDevice,
// and the device waits until that is true of the GPU too. So decisions do not
// depend on the GPU's speed.
class CudaDevice final : public Device {
 public:
  // `context` must outlive the device. What else is to be made on the context (a
  // BlockVerifier) should be made before, so that a ballast counts it. Error: the
  // capacity is not free on the card now; the message has both numbers. Or an earlier error of the
  // context.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(CudaContext& context,
                                                            const CudaDeviceOptions& options);
  // Releases whatever is still held.
  ~CudaDevice() override;

  // The capacity where there is one.
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
  // Real memory, in whole pages; as much as the card has.
  void TakeOutside(Bytes size) override;
  void ReturnOutside(Bytes size) override;

  CudaContext& context() const { return context_; }
  const absl::Status& status() const { return context_.status(); }
  const Refusals& refusals() const { return refusals_; }
  const DeviceCalls& calls() const { return calls_; }
  // Used bytes of the card by the driver's count, ours and others', ballast not
  // included: (total - free) - ballast.
  Bytes DriverUsed();
  Bytes ballast() const { return ballast_.size(); }
  // Segments and pages now held, each in whole units of 2 MiB.
  Bytes held() const { return used_; }

  // For allocators that ask the driver themselves. Returns whether `units` more bytes may
  // be requested: not after an error, an injected failure, or beyond the limit.
  bool Admit(Bytes units);
  // Whether a call succeeded; out of memory counts as a refusal by the driver,
  // anything else goes to status(). `address` may be null.
  bool Granted(CUresult result, DriverCall call, Address address, Bytes size);
  // How much a pool of the driver's holds now; part of held() from here on.
  void CountPool(Bytes reserved);

  // Releases everything: pages, ranges, segments, outside memory, ballast. Continues
  // after an error, keeps what could not be released for another try, and
  // answers with the first error. May be called at any time and more than once;
  // afterwards nothing that the device handed out is valid.
  absl::Status ReleaseEverything();

 private:
  struct Page {
    Bytes size;
    CUmemGenericAllocationHandle handle = 0;
    bool is_mapped = false;
  };

  CudaDevice(CudaContext& context, const CudaDeviceOptions& options);

  bool Refuse(Refusal why);  // counts it; false
  bool MapPage(Address address, Bytes size);
  // Unmaps and releases; false if a step failed, and then the page is kept.
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

}  // namespace memreplay

#endif  // MEMREPLAY_CUDA_CUDA_DEVICE_H_
