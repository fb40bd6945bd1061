// Where reserved memory goes that no tensor uses. docs/metrics.md has definitions, units and
// formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The cached blocks that share a free set and so serve the same requests.
struct FreeSetUse {
  uint16_t pool = 0;  // index into the trace's pool table
  bool is_large = false;
  uint32_t stream = 0;
  Bytes largest = {};  // of one block
  Bytes free = {};     // of all blocks
  uint64_t blocks = 0;
};

// The free memory of an allocator at one moment.
struct Fragmentation {
  // Index of the event after which the sample was taken, or UsageObserver::kAtStart.
  uint64_t at_event = 0;
  Usage usage;                        // at that moment
  Bytes internal;                     // active - requested
  Bytes unused;                       // reserved - active
  Bytes inactive_split;               // free bytes in segments that other blocks share
  Bytes free;                         // of all cached blocks
  std::vector<FreeSetUse> free_sets;  // in the order of VisitFreeBlocks
  // Free bytes in blocks too small for each of the last `requests` requests that their free set
  // could have had to serve.
  Bytes unservable;
  uint64_t requests = 0;
  MemoryState segments;  // if requested
  double unservable_share() const {
    return free == Bytes(0)
               ? 0.0
               : static_cast<double>(unservable.value()) / static_cast<double>(free.value());
  }
};

// When to take the sample, and what of.
struct FragmentationOptions {
  // Event at or after which the first alloc or oom triggers the sample. If absent, it is
  // Moments::at_peak.
  std::optional<uint64_t> at_event;
  // How many of the first allocs and ooms are skipped without `at_event`, since the moment is
  // expected later (AllocationsBeforePeak()). It affects only the cost.
  uint64_t skipped_allocations = 0;
  size_t last_requests = 1000;  // N, at least 1
  bool keep_segments = false;   // in the sample; O(blocks) more
  // The moment is known only at the end of the run, so each moment that could still be it is
  // sampled. If this is set, those whose samples would cost more than the run so far are skipped,
  // like the first ones. If the moment turns out to be among the skipped ones, gave_up() is true,
  // and a second, identical run with `at_event` is cheaper. If this is false, each one is sampled.
  bool may_give_up = true;
};

// An observer that samples the allocator during a run. `usage` and `moments` must see each event
// before it does, and must outlive it. O(1) per event; a sample is O(free blocks * log N).
class FragmentationObserver final : public Observer {
 public:
  FragmentationObserver(const UsageObserver& usage, const MomentsObserver& moments,
                        const FragmentationOptions& options);

  Needs needs() const override { return {.requests = false}; }
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnEvent(const Event& event) override;
  // Takes the sample now if the requested moment never came.
  void OnEnd() override;

  // Returns nullopt before the sample was taken, and after gave_up().
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
  std::vector<Request> recent_;  // ring buffer of the last N
  size_t oldest_ = 0;            // its start, once it is full
  uint64_t next_event_ = 0;
  std::optional<Fragmentation> sample_;
};

}  // namespace memreplay
