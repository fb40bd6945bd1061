#include "sim/whatif/capacity_walk.h"

#include <algorithm>

namespace memreplay {
namespace {

// A question of four walks takes no more than twenty times a replay and its reading, which together
// cost about six of these runs and a hundredth of a second.
constexpr uint64_t kMaxRequests = uint64_t{1} << 20;  // replayed for one answer
constexpr uint64_t kMinRuns = 24;
constexpr uint64_t kMaxRuns = 256;

// A search on any schedule of up to 0.6 million requests is not limited by these.
constexpr uint64_t kMaxSizeRequests = 40'000'000;
constexpr uint64_t kMinSizes = 8;

}  // namespace

CapacityWalk WalkCapacities(Bytes from, std::optional<Bytes> below, uint64_t max_runs,
                            const std::function<CapacityOutcome(Bytes capacity)>& run) {
  CapacityWalk walk;
  Bytes capacity = from;
  for (uint64_t runs = 0; !below.has_value() || capacity < *below; ++runs) {
    if (runs == max_runs) {
      walk.stopped_at = capacity;
      return walk;
    }
    const CapacityOutcome outcome = run(capacity);
    if (outcome.survives) {
      if (!walk.smallest.has_value()) walk.smallest = capacity;
      if (!walk.safe.has_value()) walk.safe = capacity;
    } else {
      walk.safe.reset();
    }
    if (!outcome.same_until.has_value()) return walk;
    capacity = *outcome.same_until;
  }
  return walk;
}

uint64_t RunsFor(uint64_t requests) {
  return std::clamp(kMaxRequests / std::max<uint64_t>(requests, 1), kMinRuns, kMaxRuns);
}

uint64_t MaxSizes(uint64_t requests) {
  return std::max(kMaxSizeRequests / std::max<uint64_t>(requests, 1), kMinSizes);
}

}  // namespace memreplay
