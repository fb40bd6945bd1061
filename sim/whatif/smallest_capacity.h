// Finds the smallest device on which a schedule survives under given settings.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/whatif/sweep.h"
#include "trace/value/units.h"

namespace memreplay {

// One device that was tried.
struct CapacityProbe {
  Bytes capacity;
  std::optional<Bytes> same_until;  // WhatIfResult::same_until
  bool survives = false;
  uint64_t ooms = 0;
  uint64_t alloc_retries = 0;
  Bytes peak_reserved;
  uint64_t device_calls = 0;
};

// The smallest devices that suffice.
struct SmallestCapacity {
  // The smallest that survives. Absent if none does, however large.
  std::optional<Bytes> capacity;
  bool is_smallest = false;  // every smaller device is known to fail
  // Every device from here on survives. It is above `capacity` if a larger device fails although a
  // smaller one survives.
  std::optional<Bytes> safe_capacity;
  // Proven only up to here; above, only a few were tried. Absent if proven for all.
  std::optional<Bytes> proven_until;
  // The smallest that survives without a single retry, as an unlimited device does.
  std::optional<Bytes> without_retries;
  bool is_cut = false;  // more runs than allowed would have been needed
  Bytes unlimited_peak_reserved;
  std::vector<CapacityProbe> probes;  // ascending
};

// Finds the smallest device. Bisects between `least` (nothing smaller can survive: the peak of live
// memory) and what an unlimited device reserves, then walks up from there from break to break
// (WalkCapacities()), which covers every device, and after that from `least` to there. What exceeds
// RunsFor() is sampled and reported as such. Under a memory fraction, where a run depends on the
// device's size itself, each multiple of 2 MiB is a break. Tries at most `max_sizes` devices; the
// bisection then ends early, at a device that survives. `settings` contain the configuration; their
// capacity is ignored.
SmallestCapacity FindSmallestCapacity(const SweepContext& context, const ReplaySettings& settings,
                                      Bytes least, uint64_t max_sizes);

}  // namespace memreplay
