// Which pool and stream holds how much: cached memory serves its own pool and
// stream only.
#ifndef MEMREPLAY_SIM_OBSERVE_HOLDERS_H_
#define MEMREPLAY_SIM_OBSERVE_HOLDERS_H_

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
  // At Moments::at_peak of the device.
  Bytes reserved, active;
  // The most that was ever cached between two requests, and after which event.
  Bytes most_cached;
  uint64_t most_cached_event = 0;
};

// O(log of pools * streams) per event, amortised.
class HoldersObserver final : public Observer {
 public:
  // `moments` must see everything before this does; streams and pools of the start are looked up
  // in the other two. All must outlive this.
  HoldersObserver(const MomentsObserver& moments, const std::vector<StreamHandle>& streams,
                  const std::vector<PoolId>& pools)
      : moments_(moments), streams_(streams), pools_(pools) {}
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnEvent(const Event& event) override;
  // By pool and stream.
  std::vector<Holder> Holders() const;

 private:
  struct Held {
    Holder told;
    Bytes reserved, active;   // now
    bool is_changed = false;  // since the last peak
  };
  Held& Of(uint16_t pool, uint32_t stream);

  const MomentsObserver& moments_;
  const std::vector<StreamHandle>& streams_;
  const std::vector<PoolId>& pools_;
  // For what changes the numbers of now.
  Held& Changing(uint16_t pool, uint32_t stream);

  std::map<std::pair<uint16_t, uint32_t>, Held> held_;
  std::vector<Held*> changed_;
  uint64_t events_ = 0;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_HOLDERS_H_
