#include "sim/whatif/smallest_capacity.h"

#include <algorithm>
#include <map>

namespace memreplay {
namespace {

constexpr Bytes kUnit = MiB(2);      // what devices hand out
constexpr uint64_t kNeighbours = 8;  // units tried next to the edge, on either side
constexpr uint64_t kGrid = 16;       // devices tried between the edge and the unlimited peak

// In units.
class Edge {
 public:
  Edge(const SweepContext& context, const ReplaySettings& settings)
      : context_(context), settings_(settings) {}

  SmallestCapacity Find(Bytes least) {
    SmallestCapacity result;
    settings_.capacity.reset();
    const SweepRow unlimited = ReplayRow(context_, settings_);
    result.unlimited_peak_reserved = unlimited.peak_reserved;
    const uint64_t low = RoundUp(least, kUnit) / kUnit;
    uint64_t high = std::max(low, RoundUp(unlimited.peak_reserved, kUnit) / kUnit);
    // A limit, and what depends on the device's size, may ask for more than that.
    for (int doubled = 0; !Survives(high) && doubled < 4; ++doubled) high *= 2;
    if (Survives(high)) {
      uint64_t edge = Bisect(low, high);
      for (uint64_t i = 1; i <= kGrid; ++i) Survives(edge + (high - edge) * i / kGrid);
      // Each round finds a smaller one or ends the search.
      for (bool lower = true; lower;) {
        for (uint64_t i = 1; i <= kNeighbours; ++i) {
          Survives(edge + i);
          if (edge >= low + i) Survives(edge - i);
        }
        const uint64_t first = FirstSurvivor();
        lower = first < edge;
        if (lower) edge = Bisect(low, first);
      }
      result.capacity = kUnit * FirstSurvivor();
    }
    Collect(&result);
    return result;
  }

 private:
  bool Survives(uint64_t units) { return Probe(units).survives; }

  const CapacityProbe& Probe(uint64_t units) {
    const auto found = probes_.find(units);
    if (found != probes_.end()) return found->second;
    settings_.capacity = kUnit * units;
    const SweepRow row = ReplayRow(context_, settings_);
    CapacityProbe& probe = probes_[units];
    probe.capacity = *settings_.capacity;
    probe.survives = row.survives();
    probe.ooms = row.ooms;
    probe.alloc_retries = row.alloc_retries;
    probe.peak_reserved = row.peak_reserved;
    probe.device_calls = row.calls.total();
    return probe;
  }

  // `high` survives; returns one that does while the one below does not, or `low`.
  uint64_t Bisect(uint64_t low, uint64_t high) {
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (Survives(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  uint64_t FirstSurvivor() const {
    return std::find_if(probes_.begin(), probes_.end(),
                        [](const auto& probe) { return probe.second.survives; })
        ->first;
  }

  void Collect(SmallestCapacity* result) const {
    for (const auto& [units, probe] : probes_) {
      result->probes.push_back(probe);
      if (!probe.survives) {
        result->safe_capacity.reset();
        continue;
      }
      if (!result->safe_capacity.has_value()) result->safe_capacity = probe.capacity;
      if (probe.alloc_retries == 0 && !result->without_retries.has_value()) {
        result->without_retries = probe.capacity;
      }
    }
  }

  const SweepContext& context_;
  ReplaySettings settings_;
  std::map<uint64_t, CapacityProbe> probes_;
};

}  // namespace

SmallestCapacity FindSmallestCapacity(const SweepContext& context, const ReplaySettings& settings,
                                      Bytes least) {
  return Edge(context, settings).Find(least);
}

}  // namespace memreplay
