// backend:cudaMallocAsync: every allocation goes to the driver's stream-ordered pool. What the
// driver does inside that pool is not public, so this is an approximation, and reports say so: used
// bytes and the limit are exact, the pool's size is the high-water mark of used bytes in steps of
// kPoolStep, and addresses are made up. Source: docs/fidelity.md, [cudaMallocAsync].
#pragma once

#include <vector>

#include "sim/model/async_allocator.h"

namespace memreplay {

// PyTorch's cudaMallocAsync backend, which does not round, split or cache. A free is complete at
// once: the driver orders reuse by stream, which costs no memory here. The pool keeps its memory
// (unlimited release threshold) until empty_cache trims it. O(1) per request.
class CudaMallocAsyncAllocator final : public AsyncAllocator {
 public:
  // `device` must outlive the allocator.
  explicit CudaMallocAsyncAllocator(Device& device);
  ~CudaMallocAsyncAllocator() override;

  void CheckInvariants() const override;

 private:
  void Alloc(const Event& request, Observer& out) override;
  void Free(const Event& request, Observer& out) override;
  void EmptyCache(const Event& request, Observer& out) override;  // trims the pool

  Address pool_;      // of the reservation that stands for the driver's pool
  Bytes pool_range_;  // its size
  Bytes reserved_;    // mapped from its start
  Bytes used_;
  Address next_;             // made-up address of the next allocation
  std::vector<Event> live_;  // the kAlloc of each live id; size 0: not live
};

}  // namespace memreplay
