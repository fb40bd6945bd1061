// Where reserved memory goes that no tensor uses. Definitions, units and
// formulas: docs/metrics.md.
#ifndef MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_
#define MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/moments.h"
#include "sim/observe/usage.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The cached blocks that share a free set: they serve the same requests.
struct FreeSetUse {
  uint16_t pool = 0;  // index into the trace's pool table
  bool is_large = false;
  uint32_t stream = 0;
  Bytes largest = {};  // block
  Bytes free = {};     // sum of all
  uint64_t blocks = 0;
};

// The free memory of an allocator at one moment.
struct Fragmentation {
  // Index of the event after which the sample was taken; UsageObserver::kAtStart.
  uint64_t at_event = 0;
  Usage usage;                        // at that moment
  Bytes internal;                     // active - requested
  Bytes unused;                       // reserved - active
  Bytes inactive_split;               // free bytes in segments that other blocks share
  Bytes free;                         // of all cached blocks
  std::vector<FreeSetUse> free_sets;  // in the order of VisitFreeBlocks
  // Free bytes in blocks too small for each of the last `requests` requests
  // that its free set could have had to serve.
  Bytes unservable;
  uint64_t requests = 0;
  MemoryState segments;  // if requested
  double unservable_share() const {
    return free == Bytes(0)
               ? 0.0
               : static_cast<double>(unservable.value()) / static_cast<double>(free.value());
  }
};

// When to look, and at what.
struct FragmentationOptions {
  // When to look: after the first alloc or oom at or after this event. Absent: at
  // Moments::at_peak.
  std::optional<uint64_t> at_event;
  // Without `at_event`: how many of the first allocs and ooms are not looked at, since the
  // moment is expected later (AllocationsBeforePeak()). Only the cost depends on it.
  uint64_t skipped_allocations = 0;
  size_t last_requests = 1000;  // N, at least 1
  bool keep_segments = false;   // in the sample; O(blocks) more
  // The moment is known only when the run is over, so each one that could still be it is
  // looked at. Those in which that would be more work than the run so far are passed over,
  // as are the skipped ones; if the moment turns out to be among them, gave_up() says so, and
  // a second, identical run with `at_event` is the cheaper way. False: each is looked at.
  bool may_give_up = true;
};

// Samples the allocator during a run. `usage` and `moments` must see each event before this
// observer does, and outlive it. O(1) per event; a sample is O(free blocks * log N).
class FragmentationObserver final : public Observer {
 public:
  FragmentationObserver(const UsageObserver& usage, const MomentsObserver& moments,
                        const FragmentationOptions& options);

  Needs needs() const override { return {.requests = false}; }
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnEvent(const Event& event) override;
  // Takes the sample now if the requested moment never came.
  void OnEnd() override;

  // Null before the sample was taken, and after gave_up().
  const std::optional<Fragmentation>& sample() const { return sample_; }
  bool gave_up() const { return gave_up_; }

 private:
  struct Request {
    Bytes size;  // rounded
    uint32_t stream;
    uint16_t pool;
  };

  bool IsMoment(uint64_t event);
  void Sample(uint64_t event);

  const Allocator* allocator_ = nullptr;
  const UsageObserver& usage_;
  const MomentsObserver& moments_;
  const FragmentationOptions options_;
  uint64_t allocations_ = 0;  // allocs and ooms so far
  uint64_t work_ = 0;         // blocks visited for samples
  bool gave_up_ = false;
  std::vector<Request> recent_;  // ring of the last N
  size_t oldest_ = 0;            // in it, once it is full
  uint64_t next_event_ = 0;
  std::optional<Fragmentation> sample_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_
