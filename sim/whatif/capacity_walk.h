// Examines every device from one size up, with no more runs than there are different outcomes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "trace/value/units.h"

namespace memreplay {

// The result of a run on a device of one size.
struct CapacityOutcome {
  bool survives = false;
  // The same on every larger device below this, or if absent on every larger one
  // (WhatIfResult::same_until).
  std::optional<Bytes> same_until;
};

// Which sizes of a device are large enough.
struct CapacityWalk {
  std::optional<Bytes> smallest;  // the smallest that survives
  // Every device from here on survives. Absent if there is none among those examined.
  std::optional<Bytes> safe;
  // Where the walk ended because it had no runs left: nothing is known of this device and larger
  // ones.
  std::optional<Bytes> stopped_at;
};

// Finds which devices survive. A run on a device of C bytes is the same on every larger one up to
// the smallest on which a request that the driver refused would have been granted, so one run at
// each such break covers all devices. Ends at `below` (if absent, when nothing is refused any
// more), or after `max_runs`.
CapacityWalk WalkCapacities(Bytes from, std::optional<Bytes> below, uint64_t max_runs,
                            const std::function<CapacityOutcome(Bytes capacity)>& run);

// Returns how many runs of that many requests one walk, or two of one search, may take. It bounds
// work, not time, so that the same file has the same answer.
uint64_t RunsFor(uint64_t requests);

// Returns how many devices a search for a size may try on a schedule of that many requests. It
// limits searches only from 0.6 million requests on.
uint64_t MaxSizes(uint64_t requests);

}  // namespace memreplay
