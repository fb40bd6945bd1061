// backend:cudaMallocAsync on a real GPU, with the driver's own stream-ordered pool.
// sim/model/async_allocator.h is its simulation.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "cuda/cuda_device.h"
#include "sim/model/async_allocator.h"

namespace memreplay {

// An allocator on the driver's stream-ordered pool. Every allocation is cuMemAllocAsync on its
// stream, from the default pool of the GPU, whose release threshold is unlimited while this object
// lives. A free is cuMemFreeAsync on the stream of the allocation or, if others used the block, on
// a stream that waits for all of them. empty_cache waits for the GPU and trims the pool. Settings
// and statistics are those of the simulated allocator, but used and reserved bytes are what the
// driver reports of the pool after each request.
//
// kSegmentMap and kSegmentUnmap report only the pool's size: the driver does not say where in
// memory the pool grew, so their addresses are offsets into it.
class CudaAsyncAllocator final : public AsyncAllocator {
 public:
  // Creates an allocator with the context, capacity and injected failures of `device`, which must
  // outlive it. A capacity by limit counts the pool's reserved bytes as far as they can be foreseen
  // (used bytes in steps of 32 MiB); a capacity by ballast is exact. Error: the GPU has no memory
  // pools.
  static absl::StatusOr<std::unique_ptr<CudaAsyncAllocator>> Create(CudaDevice& device);
  // Frees live allocations and restores the pool's settings.
  ~CudaAsyncAllocator() override;

  void CheckInvariants() const override;

  // The pool's high-water marks since Create(), as the driver reports them.
  Bytes PeakUsed();
  Bytes PeakReserved();

 private:
  struct Live {
    Event alloc;
    absl::InlinedVector<uint32_t, 2> other_streams;
  };

  CudaAsyncAllocator(CudaDevice& device, CUmemoryPool pool);
  absl::Status Prepare();
  void Alloc(const Event& request, Observer& out) override;
  void Free(const Event& request, Observer& out) override;
  void EmptyCache(const Event& request, Observer& out) override;
  void RecordStream(const Event& request) override;
  bool FreeOnDriver(const Live& live);
  Bytes Attribute(CUmemPool_attribute attribute);
  // Reads the pool's size from the driver and emits the change.
  void Observe(const Event& cause, Observer& out);

  CudaDevice& cuda_device_;
  CudaContext& context_;
  CUmemoryPool pool_;
  std::optional<cuuint64_t> old_threshold_;
  Bytes reserved_;   // of the pool, when last observed
  Bytes used_;       // likewise
  Bytes requested_;  // of live allocations
  absl::flat_hash_map<AllocationId, Live> live_;
};

}  // namespace memreplay
