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
  bool survives = false;
  uint64_t ooms = 0;
  uint64_t alloc_retries = 0;
  Bytes peak_reserved;
  uint64_t device_calls = 0;
};

struct SmallestCapacity {
  // The smallest that survives of all tried; absent: none does, however large.
  std::optional<Bytes> capacity;
  // From here on every one tried survives; above `capacity` where a larger device
  // does not survive although a smaller one does.
  std::optional<Bytes> safe_capacity;
  // The smallest tried that survives without a single retry.
  std::optional<Bytes> without_retries;
  Bytes unlimited_peak_reserved;
  std::vector<CapacityProbe> probes;  // ascending
};

// Bisects between `least` (nothing smaller can survive: the peak of live memory)
// and what an unlimited device reserves, in units of 2 MiB. Survival is not
// monotone by nature, so the units around the edge and a grid above it are tried
// too, and a survivor found below the edge is bisected again. `settings` hold the
// configuration; their capacity is ignored. About 60 replays.
SmallestCapacity FindSmallestCapacity(const SweepContext& context, const ReplaySettings& settings,
                                      Bytes least);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHATIF_SMALLEST_CAPACITY_H_
