// Every device from one size up, with no more runs than it has different outcomes.
#ifndef MEMREPLAY_SIM_WHATIF_CAPACITY_WALK_H_
#define MEMREPLAY_SIM_WHATIF_CAPACITY_WALK_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "trace/value/units.h"

namespace memreplay {

// What a run on a device of one size came to.
struct CapacityOutcome {
  bool survives = false;
  // The same on every larger device below this; absent: on every larger one.
  // WhatIfResult::same_until.
  std::optional<Bytes> same_until;
};

// Which sizes of a device are enough.
struct CapacityWalk {
  std::optional<Bytes> smallest;  // that survives
  // From here on every device survives; absent: there is none among those walked.
  std::optional<Bytes> safe;
  // The walk ended here because it had no runs left: nothing is known of this device and larger
  // ones.
  std::optional<Bytes> stopped_at;
};

// A run on a device of C bytes is the same on every larger one up to the smallest on which
// a request that the driver refused would have been granted: from break to break all
// devices are known. Ends at `below` (absent: when nothing is refused any more), or after
// `max_runs`.
CapacityWalk WalkCapacities(Bytes from, std::optional<Bytes> below, uint64_t max_runs,
                            const std::function<CapacityOutcome(Bytes capacity)>& run);

// How many runs of that many requests one walk, or two of one search, may take: a bound on
// work, not on time, so that the same file has the same answer.
uint64_t RunsFor(uint64_t requests);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_CAPACITY_WALK_H_
