#include "sim/recording/hypotheses.h"

#include <cstdint>

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

constexpr Hypothesis kHypotheses[] = {
    {MayHavePoolOptions, /*needs_recorded_release=*/false, FindPoolOptions},
    {MayHaveGonePools, /*needs_recorded_release=*/false, FindGonePools},
    {MayHaveChangedSettings, /*needs_recorded_release=*/true, FindChangedSettings},
};

}  // namespace

absl::Span<const Hypothesis> AllHypotheses() { return kHypotheses; }

bool MayHavePoolOptions(const Trace& trace) { return !trace.is_program && trace.pools.size() > 1; }

std::optional<Explanation> FindPoolOptions(const Unexplained& device) {
  const Schedule& plain = device.schedule;
  if (!device.profile.no_split_pools || !plain.pool_flags().empty()) return std::nullopt;
  Explanation found;
  std::vector<uint64_t>& flags = found.pools.flags;
  flags.resize(plain.pools().size());
  size_t pools = 0;
  RecordingFollowed followed = device.followed;
  while (!followed.exact) {
    const uint16_t pool = followed.divergence.has_value() ? PoolOf(*followed.divergence) : 0;
    if (pool == 0 || pool >= flags.size() || flags[pool] != 0) return std::nullopt;
    flags[pool] = kPoolNoSplit;
    ++pools;
    const uint64_t before = followed.until_event;
    followed = FollowRecording(Schedule::Build(device.trace, device.device, found.pools),
                               device.config, device.profile);
    if (!followed.exact && followed.until_event <= before) return std::nullopt;
  }
  if (pools == 0) return std::nullopt;
  found.notes = {absl::StrCat(
      "device ", plain.device(), ": it is assumed that ", pools,
      pools == 1 ? " MemPool was" : " MemPools were",
      " made with no_split=True: the file does not say so, but only then does the replay follow "
      "every event")};
  return found;
}

}  // namespace memreplay
