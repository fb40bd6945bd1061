// The moments of a run that its result tells of: where each figure of usage first
// peaked, and what ran out of memory.
#ifndef MEMREPLAY_SIM_OBSERVE_MOMENTS_H_
#define MEMREPLAY_SIM_OBSERVE_MOMENTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "sim/device/watched_device.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "trace/value/units.h"

namespace memreplay {

// A request that ran out of memory.
struct OomMoment {
  uint32_t request = 0;  // position in Schedule::requests()
  Bytes size;            // rounded, as the allocator looked for it
  Bytes free;            // of the device then
};

struct Moments {
  uint64_t requests = 0;  // applied
  // By UsageKind; kBeforeFirstRequest: at the start.
  std::array<uint32_t, kUsageKinds> peak_request = {};
  Usage at_peak;  // once the request that first reserved most was served
  std::vector<OomMoment> ooms;
};

// O(1) per event.
class MomentsObserver final : public Observer {
 public:
  // `usage` must see everything before this does, and outlive it.
  explicit MomentsObserver(const UsageObserver& usage) : usage_(usage) {}
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnRequest(size_t request) override {
    request_ = static_cast<uint32_t>(request);
    ++moments_.requests;
  }
  void OnEvent(const Event& event) override;

  const Moments& moments() const { return moments_; }

 private:
  const UsageObserver& usage_;
  Usage peak_;
  uint32_t request_ = kBeforeFirstRequest;
  Moments moments_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_MOMENTS_H_
