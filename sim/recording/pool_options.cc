#include "sim/recording/pool_options.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace memreplay {
namespace {

// Returns the pool of the event that differs; 0 if it is a default pool.
uint16_t PoolOf(const Divergence& divergence) {
  for (const std::optional<Event>* event : {&divergence.recorded, &divergence.simulated}) {
    if (event->has_value() && (*event)->pool != 0) return (*event)->pool;
  }
  return 0;
}

}  // namespace

bool MayHavePoolOptions(const Trace& trace) { return !trace.is_program && trace.pools.size() > 1; }

std::optional<PoolOptions> FindPoolOptions(const Schedule& plain, const AllocatorConfig& config,
                                           const TorchProfile& profile,
                                           const RecordingFollowed& without) {
  if (!profile.no_split_pools || !plain.pool_flags().empty()) return std::nullopt;
  PoolOptions found;
  std::vector<uint64_t>& flags = found.pools.flags;
  flags.resize(plain.pools().size());
  size_t pools = 0;
  RecordingFollowed followed = without;
  while (!followed.exact) {
    const uint16_t pool = followed.divergence.has_value() ? PoolOf(*followed.divergence) : 0;
    if (pool == 0 || pool >= flags.size() || flags[pool] != 0) return std::nullopt;
    flags[pool] = kPoolNoSplit;
    ++pools;
    const uint64_t before = followed.until_event;
    followed = FollowRecording(
        Schedule::Build(plain.shared_trace(), plain.device_index(), found.pools), config, profile);
    if (!followed.exact && followed.until_event <= before) return std::nullopt;
  }
  if (pools == 0) return std::nullopt;
  found.note = absl::StrCat(
      "device ", plain.device(), ": it is assumed that ", pools,
      pools == 1 ? " MemPool was" : " MemPools were",
      " made with no_split=True: the file does not say so, but only then does the replay follow "
      "every event");
  return found;
}

}  // namespace memreplay
