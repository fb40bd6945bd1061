// An allocator without caching: every allocation is one segment of the device, released by its
// free. It is the baseline for comparisons with the caching allocator
// (PYTORCH_NO_CUDA_MEMORY_CACHING=1).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/memory_stats.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// What a direct allocator needs to know of the trace.
struct DirectAllocatorOptions {
  // Maps Event::stream to its handle and Event::pool to its id, as in the trace; a stream beyond
  // the table is its own handle.
  std::vector<StreamHandle> streams = {StreamHandle(0)};
  std::vector<PoolId> pools = {PoolId{}};
};

// An allocator whose blocks and segments have exactly the requested size; the device's FreeMemory()
// shows how much the device rounds. A free waits for all use of the memory, as cudaFree does, so it
// is complete at once whatever streams used the block. Pools make no difference, empty_cache has
// nothing to release, and there are no settings: any string is accepted. Statistics count only what
// is meaningful here; the figures of both pools depend on the requested size. O(1) per request plus
// the device's time.
class DirectAllocator final : public Allocator {
 public:
  // `device` must outlive the allocator.
  explicit DirectAllocator(Device& device, DirectAllocatorOptions options = {});

  absl::Status Apply(const Event& request, Observer& out) override;
  absl::Status ApplySettings(std::string_view) override { return absl::OkStatus(); }
  absl::Status SetMemoryFraction(double fraction) override;
  const MemoryStats& statistics() const override { return stats_; }
  MemoryState Segments() const override;
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)>) const override {}
  void CheckInvariants() const override;

 private:
  struct Live {
    Address address;  // null: not live
    Bytes size;
    uint32_t stream = 0;
    uint32_t stack = 0;
    uint16_t pool = 0;
  };

  void Alloc(const Event& request, Observer& out);
  void Free(const Event& request, Observer& out);

  Device& device_;
  DirectAllocatorOptions options_;
  std::vector<Live> live_;  // by AllocationId
  std::optional<Bytes> limit_;
  Bytes total_;  // live
  MemoryStats stats_;
};

}  // namespace memreplay
