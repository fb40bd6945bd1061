// Drives a CachingAllocator step by step and keeps what it emitted as short lines ("segment_alloc
// A+0 2M"), one an event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"

namespace memreplay {

inline constexpr uint64_t kMB = uint64_t{1} << 20;

struct HarnessOptions {
  std::string torch = "2.11";
  uint64_t capacity = 0;  // 0: unlimited
  AllocatorConfig config;
  std::vector<uint64_t> streams = {0};
  std::vector<PoolId> pools = {PoolId{}};
  bool explicit_completion = false;
};

class AllocatorHarness : public Observer {
 public:
  explicit AllocatorHarness(const HarnessOptions& options = {});

  // Returns the id. `stream` is an index into options.streams.
  AllocationId Alloc(uint64_t size, uint32_t stream = 0);
  void Free(AllocationId id);
  // Applies any other request.
  absl::Status Do(EventKind kind, AllocationId id = kNoAllocation, uint32_t stream = 0,
                  uint16_t pool = 0, uint64_t size = 0);
  absl::Status EmptyCache() { return Do(EventKind::kEmptyCache); }

  // Returns what was emitted since the last call, PyTorch's actions only, joined by "; ". Addresses
  // print as A+n from the first cudaMalloc address, Vi+n from the i-th reservation; sizes that are
  // whole MiB print as "nM".
  std::string Take();

  CachingAllocator& allocator() { return *allocator_; }
  const MemoryStats& stats() const { return allocator_->statistics(); }
  SimulatedDevice& device() { return *device_; }
  // Returns "A+0 3072 inactive 1000; ..." for all blocks, segments divided by " | ".
  std::string Blocks() const;
  void OnEvent(const Event& event) override;

 private:
  std::string Name(Address address) const;
  void NoteReservation(Address mapped);

  std::unique_ptr<SimulatedDevice> device_;
  std::unique_ptr<CachingAllocator> allocator_;
  AllocationId next_id_ = 0;
  std::vector<std::string> lines_;
  std::vector<Address> reservations_;  // ascending
};

}  // namespace memreplay
