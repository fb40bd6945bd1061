#include "sim/recording/hypotheses.h"

#include <utility>

#include "sim/recording/changed_settings.h"
#include "sim/recording/gone_pools.h"
#include "sim/recording/pool_options.h"

namespace memreplay {
namespace {

std::optional<Explanation> ByPoolOptions(const Unexplained& device) {
  std::optional<PoolOptions> options =
      FindPoolOptions(device.schedule, device.config, device.profile, device.followed);
  if (!options.has_value()) return std::nullopt;
  return Explanation{.pools = std::move(options->pools), .notes = {std::move(options->note)}};
}

std::optional<Explanation> ByGonePools(const Unexplained& device) {
  if (!MayHaveGonePools(device.schedule)) return std::nullopt;
  std::optional<GonePools> gone =
      FindGonePools(device.trace, device.device, device.config, device.profile, device.followed);
  if (!gone.has_value()) return std::nullopt;
  return Explanation{.pools = std::move(gone->pools), .notes = {std::move(gone->note)}};
}

// Pools that are gone may explain what the changes leave open.
std::optional<Explanation> ByChangedSettings(const Unexplained& device) {
  std::optional<ChangedSettings> changed =
      FindChangedSettings(device.schedule, device.config, device.profile, device.followed);
  if (!changed.has_value()) return std::nullopt;
  Explanation explanation;
  if (!changed->followed.exact) {
    std::optional<GonePools> gone = FindGonePools(changed->trace, device.device, changed->config,
                                                  device.profile, changed->followed);
    if (!gone.has_value()) return std::nullopt;
    explanation.pools = std::move(gone->pools);
    explanation.notes.push_back(std::move(gone->note));
  }
  explanation.trace = std::move(changed->trace);
  explanation.config = std::move(changed->config);
  explanation.notes.push_back(std::move(changed->note));
  return explanation;
}

constexpr Hypothesis kHypotheses[] = {
    {MayHavePoolOptions, /*needs_recorded_release=*/false, ByPoolOptions},
    {MayHaveGonePools, /*needs_recorded_release=*/false, ByGonePools},
    {MayHaveChangedSettings, /*needs_recorded_release=*/true, ByChangedSettings},
};

}  // namespace

absl::Span<const Hypothesis> AllHypotheses() { return kHypotheses; }

}  // namespace memreplay
