// Finds the smallest device on which a schedule survives under given settings, and the largest
// value of a number for which something still fits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  Bytes unlimited_peak_reserved, unlimited_peak_allocated;
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

enum class FitOutcome : uint8_t {
  kFits,
  kRunsOut,  // a larger value may fit although this one does not
  kNever,    // no allocator suffices, and a larger value needs no less
  kNoValue,  // there is no run with this value
  kUntried,  // there were enough runs; so it is for every value from now on
};

// The largest values that fit.
struct LargestFit {
  // Every value up to here fits. Absent if the first does not.
  std::optional<int64_t> safe;
  // The largest value tried that fits. It is above `safe` if fragmentation lets a larger one fit
  // although a smaller one does not. Absent if none fits.
  std::optional<int64_t> largest;
  // Whether all values up to `safe` were tried and the next does not fit; else only those in
  // `tried` were.
  bool safe_is_proven = false;
  // Whether all values above `largest` were tried up to one that never fits, or to the limit.
  bool largest_is_proven = false;
  std::map<int64_t, FitOutcome> tried;
};

// Finds the largest values that fit. Doubles from 1 until a value does not fit (or `limit` does)
// and bisects. Since fitting is not monotone, it then tries all values above the edge up to the
// first that never fits, and all below, nearest first, as far as `max_tries` allows. Calls
// `outcome` once per value, and may stop short of the edge if that returns kUntried.
LargestFit FindLargestFit(int64_t limit, uint64_t max_tries,
                          const std::function<FitOutcome(int64_t value)>& outcome);

}  // namespace memreplay
