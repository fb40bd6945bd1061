// Why reserved memory had to grow to its peak: which cached memory could not serve the request that
// made it grow, and why.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/settings/allocator_config.h"
#include "trace/value/units.h"

namespace memreplay {

// Why a cached block did not serve a request. The first reason that holds counts.
enum class Obstacle : uint8_t {
  kOtherPool,    // of another pool, or of the other kind (small, large)
  kOtherStream,  // of another stream; streams never share blocks
  kOversize,     // max_split_size_mb keeps it from smaller requests
  kSplit,        // too small, and its segment cannot be released because live blocks share it
  kTooSmall,     // too small, and a whole segment
  kFits,         // large enough, but cached only after the request was served
  kCount
};
inline constexpr size_t kObstacles = static_cast<size_t>(Obstacle::kCount);

// Cached blocks that did not serve a request for one reason.
struct CachedBytes {
  Bytes bytes;
  uint64_t blocks = 0;
  Bytes largest;
  Address largest_address;  // on the simulated device
};

// Why reserved memory grew to its peak.
struct PeakCause {
  bool known = false;
  Bytes requested;  // of the request
  uint32_t stream = 0;
  uint32_t stack = 0;               // of the request
  AllocationId id = kNoAllocation;  // the requested allocation, if it was granted
  std::array<CachedBytes, kObstacles> cached;
  const CachedBytes& operator[](Obstacle obstacle) const {
    return cached[static_cast<size_t>(obstacle)];
  }
  // Returns the obstacle of most cached bytes, apart from kFits.
  Obstacle main() const;
};

// An observer that examines the cached blocks of the allocator after the first alloc or oom at or
// after the event `at_event`. O(1) per event, O(free blocks) once.
class PeakCauseObserver final : public Observer {
 public:
  // `config` is the current one and must outlive this.
  PeakCauseObserver(const AllocatorConfig& config, uint64_t at_event)
      : config_(config), at_event_(at_event) {}
  void OnStart(const MemoryState& /*state*/, const Allocator& allocator) override {
    allocator_ = &allocator;
  }
  void OnEvent(const Event& event) override;
  const PeakCause& cause() const { return cause_; }

 private:
  const Allocator* allocator_ = nullptr;
  const AllocatorConfig& config_;
  const uint64_t at_event_;
  uint64_t events_ = 0;
  PeakCause cause_;
};

}  // namespace memreplay
