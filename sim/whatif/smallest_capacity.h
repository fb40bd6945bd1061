// The smallest device on which a program survives under given settings.
#ifndef MEMREPLAY_SIM_WHATIF_SMALLEST_CAPACITY_H_
#define MEMREPLAY_SIM_WHATIF_SMALLEST_CAPACITY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/whatif/sweep.h"
#include "trace/value/units.h"

namespace memreplay {

// One device tried.
struct CapacityProbe {
  Bytes capacity;
  std::optional<Bytes> same_until;  // WhatIfResult::same_until
  bool survives = false;
  uint64_t ooms = 0;
  uint64_t alloc_retries = 0;
  Bytes peak_reserved;
  uint64_t device_calls = 0;
};

// The smallest devices that are enough.
struct SmallestCapacity {
  // The smallest that survives; absent: none does, however large.
  std::optional<Bytes> capacity;
  bool is_smallest = false;  // every smaller device is known to fail
  // From here on every larger device survives; above `capacity` where a larger one does
  // not although a smaller one does.
  std::optional<Bytes> safe_capacity;
  // Proven only up to here: beyond, a few were tried. Absent: proven for all.
  std::optional<Bytes> proven_until;
  // The smallest that survives without a single retry, as an unlimited device does.
  std::optional<Bytes> without_retries;
  Bytes unlimited_peak_reserved;
  std::vector<CapacityProbe> probes;  // ascending
};

// Bisects between `least` (nothing smaller can survive: the peak of live memory)
// and what an unlimited device reserves, then goes up from there from break to break
// (WalkCapacities()), which knows every device, and after that from `least` to there. What
// RunsFor() leaves undone is sampled and said. Under a memory fraction, where a run depends on
// the device's size itself, each multiple of 2 MiB is a break. `settings` hold the configuration;
// their capacity is ignored.
SmallestCapacity FindSmallestCapacity(const SweepContext& context, const ReplaySettings& settings,
                                      Bytes least);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_SMALLEST_CAPACITY_H_
