// backend:cudaMallocAsync: every allocation goes to the driver's stream-ordered
// pool. What the driver does inside that pool is not public, so this is an
// approximation, and reports say so: used bytes and the limit are exact, the
// pool's size is the high-water mark of used bytes in steps of kPoolStep, and
// addresses are made up. Source: docs/fidelity.md, "cudaMallocAsync".
#ifndef MEMREPLAY_SIM_MODEL_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
#define MEMREPLAY_SIM_MODEL_CUDA_MALLOC_ASYNC_ALLOCATOR_H_

#include <optional>
#include <string_view>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"

namespace memreplay {

// No rounding, no splitting, no cache of PyTorch's own. A free is complete at
// once: the driver orders reuse by stream, which costs no memory here. The pool
// keeps what it has (release threshold unlimited) until empty_cache trims it.
// Statistics: only the `all` part of allocated, active and reserved bytes, as
// PyTorch fills them for this backend. O(1) per request.
class CudaMallocAsyncAllocator final : public Allocator {
 public:
  // By how much the driver's pool grows at least; seen on recent drivers.
  static constexpr Bytes kPoolStep = MiB(32);

  // `device` must outlive the allocator.
  explicit CudaMallocAsyncAllocator(Device& device);
  ~CudaMallocAsyncAllocator() override;

  absl::Status Apply(const Event& request, Observer& out) override;
  // Native-only keys are ignored by this backend; naming another backend is an error.
  absl::Status ApplySettings(std::string_view conf) override;
  absl::Status SetMemoryFraction(double fraction) override;
  const MemoryStats& statistics() const override { return stats_; }
  int64_t ooms() const override { return ooms_; }
  void ResetPeakStatistics() override { stats_.ResetPeak(); }
  MemoryState Segments() const override { return {}; }  // PyTorch gives no snapshot either
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)>) const override {}
  void CheckInvariants() const override;

 private:
  void Alloc(const Event& request, Observer& out);
  void Free(const Event& request, Observer& out);
  void Trim(const Event& request, Observer& out);

  Device& device_;
  Address pool_;      // of the reservation that stands for the driver's pool
  Bytes pool_range_;  // its size
  Bytes reserved_;    // mapped from its start
  Bytes used_;
  Address next_;  // made-up address of the next allocation
  std::optional<Bytes> limit_;
  std::vector<Event> live_;  // the kAlloc of each live id; size 0: not live
  int64_t ooms_ = 0;
  MemoryStats stats_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_CUDA_MALLOC_ASYNC_ALLOCATOR_H_
