// Where reserved memory goes that no tensor uses. Definitions, units and
// formulas: docs/metrics.md.
#ifndef MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_
#define MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
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

struct Fragmentation {
  uint64_t at_event = 0;              // index of the event after which the sample was taken
  Usage usage;                        // at that moment
  Bytes internal;                     // active - requested
  Bytes unused;                       // reserved - active
  Bytes inactive_split;               // free bytes in segments that other blocks share
  Bytes free;                         // of all cached blocks
  std::vector<FreeSetUse> free_sets;  // in the order of VisitFreeBlocks
  // Free bytes in blocks too small for each of the last `requests` requests
  // that its free set could have been asked for.
  Bytes unservable;
  uint64_t requests = 0;
  MemoryState segments;  // if asked for
  double unservable_share() const {
    return free == Bytes(0)
               ? 0.0
               : static_cast<double>(unservable.value()) / static_cast<double>(free.value());
  }
};

struct FragmentationOptions {
  // When to look: after the first alloc or oom at or after this event. The
  // peak of reserved memory is known after a first run; a second, identical
  // one samples it.
  uint64_t at_event = 0;
  size_t last_requests = 1000;  // N, at least 1
  // Block size for a requested size. Default: rounded up to 512 bytes, which
  // is PyTorch's rule unless roundup_power2_divisions is set.
  std::function<Bytes(Bytes)> block_size_for = {};
  bool keep_segments = false;  // in the sample; O(blocks) more
};

// Samples `allocator` during a run, and keeps the highest internal and unused
// bytes of the whole run. `usage` must see each event before this observer
// does. Both must outlive it. O(1) per event; a sample is
// O(free blocks * log N).
class FragmentationObserver final : public Observer {
 public:
  FragmentationObserver(const Allocator& allocator, const UsageObserver& usage,
                        FragmentationOptions options);

  void OnEvent(const Event& event) override;
  // After the run: takes the sample now if its moment never came.
  void Finish();

  // Null before the sample was taken.
  const std::optional<Fragmentation>& sample() const { return sample_; }
  Bytes peak_internal() const { return peak_internal_; }
  uint64_t peak_internal_event() const { return peak_internal_event_; }
  Bytes peak_unused() const { return peak_unused_; }
  uint64_t peak_unused_event() const { return peak_unused_event_; }

 private:
  struct Request {
    Bytes size;  // rounded
    uint32_t stream;
    uint16_t pool;
  };

  void Sample(uint64_t event);

  const Allocator& allocator_;
  const UsageObserver& usage_;
  FragmentationOptions options_;
  std::vector<Request> recent_;  // ring of the last N
  uint64_t requests_seen_ = 0;
  uint64_t next_event_ = 0;
  Bytes peak_internal_, peak_unused_;
  uint64_t peak_internal_event_ = 0, peak_unused_event_ = 0;
  std::optional<Fragmentation> sample_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_FRAGMENTATION_H_
