// backend:cudaMallocAsync: every allocation goes to the driver's stream-ordered pool. What the
// driver does inside that pool is not public, so its simulation is an approximation, and reports
// say so: used bytes and the limit are exact, the pool's size is the high-water mark of used bytes
// in steps of kPoolStep, and addresses are made up. Source: docs/fidelity.md, [cudaMallocAsync].
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"

namespace memreplay {

// The parts of an allocator of backend:cudaMallocAsync that are the same on every device: settings,
// limit, statistics and the requests that concern only the device. It keeps only the `all` part of
// allocated, active and reserved bytes, as PyTorch does for this backend.
class AsyncAllocator : public Allocator {
 public:
  // The minimum by which the driver's pool grows, as observed on recent drivers.
  static constexpr Bytes kPoolStep = MiB(32);

  absl::Status Apply(const Event& request, Observer& out) final;
  // Ignores keys that only the native backend has; naming another backend is an error.
  absl::Status ApplySettings(std::string_view conf) final;
  absl::Status SetMemoryFraction(double fraction) final;
  const MemoryStats& statistics() const final { return stats_; }
  int64_t ooms() const final { return ooms_; }
  MemoryState Segments() const final { return {}; }  // PyTorch has no snapshot either
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)>) const final {}

 protected:
  // `device` must outlive the allocator.
  explicit AsyncAllocator(Device& device) : device_(device) {}

  // Apply a request. The size of an allocation is not 0.
  virtual void Alloc(const Event& request, Observer& out) = 0;
  virtual void Free(const Event& request, Observer& out) = 0;
  virtual void EmptyCache(const Event& request, Observer& out) = 0;
  virtual void RecordStream(const Event& /*request*/) {}

  // Emits the event that reports that there is no memory for `request`.
  void EmitOom(const Event& request, Observer& out);

  Device& device_;
  std::optional<Bytes> limit_;
  MemoryStats stats_;

 private:
  int64_t ooms_ = 0;
};

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
