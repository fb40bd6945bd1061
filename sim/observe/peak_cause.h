// Why reserved memory had to grow to its peak: what of the cached memory could
// not serve the request that made it grow.
#ifndef MEMREPLAY_SIM_OBSERVE_PEAK_CAUSE_H_
#define MEMREPLAY_SIM_OBSERVE_PEAK_CAUSE_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/settings/allocator_config.h"
#include "trace/value/units.h"

namespace memreplay {

// Why a cached block did not serve a request; the first that holds.
enum class Obstacle : uint8_t {
  kOtherPool,    // of another pool, or of the other kind (small, large)
  kOtherStream,  // of another stream: never shared between streams
  kOversize,     // max_split_size_mb keeps it from smaller requests
  kSplit,        // too small, and its segment cannot go back: live blocks share it
  kTooSmall,     // too small, a whole segment
  kFits,         // large enough: cached after the request was served
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
  uint32_t stack = 0;               // that asked
  AllocationId id = kNoAllocation;  // of what was requested, where it was granted
  std::array<CachedBytes, kObstacles> cached;
  const CachedBytes& operator[](Obstacle obstacle) const {
    return cached[static_cast<size_t>(obstacle)];
  }
  // What most cached bytes suffer from, kFits aside.
  Obstacle main() const;
};

// Looks at the cached blocks of the allocator after the first alloc or oom at or
// after the event `at_event`. O(1) per event, O(free blocks) once.
class PeakCauseObserver final : public Observer {
 public:
  // `config`, the current one, must outlive it.
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

#endif  // MEMREPLAY_SIM_OBSERVE_PEAK_CAUSE_H_
