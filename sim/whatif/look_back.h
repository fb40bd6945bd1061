// Describes a run as a whole: memory over time, what held it, and what is unknown because the
// recording began late.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/model/observer.h"
#include "sim/observe/timeline.h"
#include "sim/observe/usage.h"
#include "sim/study/study.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// What one pool holds on one stream. Cached memory serves only its own pool and stream.
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

// How memory developed in the replay of a recording or in a schedule's run, and what held it.
struct LookBack {
  std::vector<TimelineBucket> timeline;
  std::vector<Holder> holders;
  Usage peak;
  // The number of events up to which a recording is exact (all of them: to the end), and why no
  // further.
  uint64_t exact_until = 0;
  std::string exactness_reason;
  bool diverged = false;  // from there on this is the simulation's history, not the recording's
  // Blocks handed out before the recording whose extent it leaves open, and by how much allocated
  // and active memory may be less, or more, than reported.
  uint64_t open_extents = 0;
  Bytes less, more;
};

inline constexpr size_t kTimelineBuckets = 64;

// Looks back on a recording as it happened, or on a written schedule under its settings. Error:
// ReplayWhatIf()'s.
absl::StatusOr<LookBack> LookBackOn(const Study& study);

// Requested bytes that are live when a recording has most of them live, and how many of those it
// saw being allocated. Needs no simulation. O(requests).
struct SeenAtPeak {
  Bytes live, seen;
};
SeenAtPeak SeenWhereMostIsLive(const Schedule& schedule);

}  // namespace memreplay
