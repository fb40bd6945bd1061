// How much each pool and stream holds: cached memory serves only its own pool and stream.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/model/observer.h"
#include "sim/observe/moments.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// What one pool holds on one stream.
struct Holder {
  uint16_t pool = 0;  // index into the trace's pool table
  uint32_t stream = 0;
  // Both are at Moments::at_peak of the device.
  Bytes reserved, active;
  // The maximum that was ever cached between two requests, and the event before it.
  Bytes max_cached;
  uint64_t most_cached_event = 0;
};

// An observer that adds up what each pool holds on each stream. O(log of pools * streams) per
// event, amortised.
class HoldersObserver final : public Observer {
 public:
  // `moments` must see everything before this does; `streams` and `pools` give the indexes of those
  // of the start. All must outlive this.
  HoldersObserver(const MomentsObserver& moments, const std::vector<StreamHandle>& streams,
                  const std::vector<PoolId>& pools)
      : moments_(moments), streams_(streams), pools_(pools) {}
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnEvent(const Event& event) override;
  // Returns what each pool holds on each stream, in this order.
  std::vector<Holder> Holders() const;

 private:
  struct Held {
    Holder told;
    Bytes reserved, active;   // current values
    bool is_changed = false;  // since the last peak
  };
  Held& Of(uint16_t pool, uint32_t stream);

  const MomentsObserver& moments_;
  const std::vector<StreamHandle>& streams_;
  const std::vector<PoolId>& pools_;
  // Returns the entry whose current values are about to change.
  Held& Changing(uint16_t pool, uint32_t stream);

  std::map<std::pair<uint16_t, uint32_t>, Held> held_;
  std::vector<Held*> changed_;
  uint64_t events_ = 0;
};

}  // namespace memreplay
