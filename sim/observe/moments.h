// The moments of a run that its result reports: where each figure of usage first peaked, the
// fullest moment at the reserved peak, and what ran out of memory.
#pragma once

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
  Bytes free;            // of the device at that moment
};

// The start of a run, or the moment after one of its alloc or oom events.
struct Moment {
  uint32_t request = kBeforeFirstRequest;    // position in Schedule::requests()
  uint64_t event = UsageObserver::kAtStart;  // index among the events of the run
  Usage usage;
};

// When a run reached its peaks. WhatIfResult, SampledReplay and DeviceRun contain it.
struct Moments {
  uint64_t requests = 0;  // applied
  // The request of each peak, by UsageKind, or kBeforeFirstRequest for the start.
  std::array<uint32_t, kUsageKinds> peak_request = {};
  // The moment at which reserved memory is at its peak and active memory is highest; the first if
  // there are several. What is unused then is waste; earlier, most of it may merely wait for
  // tensors that are about to be allocated.
  Moment at_peak;
  // The event at which reserved memory grew, on its way to the peak, by the most that cached memory
  // might have served: the largest min(growth, unused before). kAtStart if there is none.
  uint64_t cause_event = UsageObserver::kAtStart;
};

// An observer that finds the moments of a run. O(1) per event.
class MomentsObserver final : public Observer {
 public:
  // `usage` must see everything before this does, and must outlive it.
  explicit MomentsObserver(const UsageObserver& usage) : usage_(usage) {}
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  [[gnu::always_inline]] void OnRequest(size_t request) override {
    request_ = static_cast<uint32_t>(request);
    unused_before_ = usage_.current().reserved() - usage_.current().allocated();
    ++moments_.requests;
  }
  [[gnu::always_inline]] void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kOom) [[unlikely]] {
      ooms_.push_back({request_, event.size, event.device_free()});
    } else if (event.kind != EventKind::kAlloc) {
      return;
    }
    const Usage& now = usage_.current();
    const Usage& most = moments_.at_peak.usage;
    const bool is_fullest = now.reserved() > most.reserved() ||
                            (now.reserved() == most.reserved() && now.active() > most.active());
    if (is_fullest || usage_.rises() != rises_) [[unlikely]] {
      Look(is_fullest);
    }
  }

  const Moments& moments() const { return moments_; }
  const std::vector<OomMoment>& ooms() const { return ooms_; }

 private:
  // Called after an allocation, granted or refused, that made the moment the fullest or with which
  // a peak rose: usage grows within a request for memory, whose last event is one of the two. It
  // does not read the event, which the compiler then need not write to memory.
  [[gnu::noinline]] void Look(bool is_fullest);

  const UsageObserver& usage_;
  Usage peak_;
  uint64_t rises_ = 0;   // UsageObserver::rises() when peak_ was read
  Bytes unused_before_;  // when the request arrived
  Bytes most_avoidable_;
  uint32_t request_ = kBeforeFirstRequest;
  Moments moments_;
  std::vector<OomMoment> ooms_;
};

}  // namespace memreplay
