// The parts of backend:cudaMallocAsync that are the same on every device: settings, limit,
// statistics and the requests that concern only the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"

namespace memreplay {

// An allocator of backend:cudaMallocAsync. It keeps only the `all` part of allocated, active and
// reserved bytes, as PyTorch does for this backend.
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

}  // namespace memreplay
