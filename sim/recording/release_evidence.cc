#include "sim/recording/release_evidence.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/recording/exact_replay.h"
#include "sim/recording/gone_pools.h"
#include "sim/recording/torch_inference.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// How the devices of a file replay under the rules of one release.
struct Attempt {
  const TorchProfile* profile = nullptr;
  std::vector<RecordingFollowed> devices = {};  // those that have events
  uint64_t exact_events = 0;                    // of all
  bool exact = true;                            // all events and final blocks
  uint64_t parts_at = 0;  // first event that differs, of the first device that does
};

// The settings in force during the recording, if a release made it.
absl::StatusOr<AllocatorConfig> RecordedConfigOf(const Trace& trace, const TorchProfile& profile) {
  SettingsRequest release;
  release.torch = std::string(profile.release);
  absl::StatusOr<ReplaySettings> settings = ResolveSettings(trace, release);
  if (!settings.ok()) return settings.status();
  return std::move(settings->recorded_config);
}

Attempt Try(const std::vector<Schedule>& schedules, const AllocatorConfig& config,
            const TorchProfile& profile) {
  Attempt attempt{.profile = &profile};
  for (const Schedule& schedule : schedules) {
    const RecordingFollowed& device =
        attempt.devices.emplace_back(FollowRecording(schedule, config, profile));
    attempt.exact_events += device.until_event;
    if (!device.exact) {
      if (attempt.exact) attempt.parts_at = device.until_event;
      attempt.exact = false;
    }
  }
  return attempt;
}

// In the given order, up to the first that is exact.
std::vector<Attempt> TryEach(const std::shared_ptr<const Trace>& trace,
                             const std::vector<const TorchProfile*>& profiles) {
  std::vector<Schedule> schedules;
  for (size_t device = 0; device < trace->devices.size(); ++device) {
    if (!trace->devices[device].events.empty()) {
      schedules.push_back(Schedule::Build(trace, device));
    }
  }
  std::vector<Attempt> attempts;
  if (schedules.empty()) return attempts;
  for (const TorchProfile* profile : profiles) {
    const absl::StatusOr<AllocatorConfig> config = RecordedConfigOf(*trace, *profile);
    if (!config.ok()) continue;
    attempts.push_back(Try(schedules, *config, *profile));
    if (attempts.back().exact) break;
  }
  return attempts;
}

// The exact one is the last; of equals the first.
const Attempt& BestOf(const std::vector<Attempt>& attempts) {
  if (attempts.back().exact) return attempts.back();
  return *std::max_element(
      attempts.begin(), attempts.end(),
      [](const Attempt& a, const Attempt& b) { return a.exact_events < b.exact_events; });
}

std::string Why(const TorchInference& inferred, const Attempt& chosen, const Attempt& newest) {
  std::string why =
      StrCat("inferred: ", inferred.layout, "; assumed to be ", chosen.profile->release);
  if (chosen.profile == newest.profile) return why;
  return why += StrCat(chosen.exact ? ", the newest release that reproduces it"
                                    : ", the release that reproduces most of it",
                       ": ", newest.profile->release, " would behave differently at event ",
                       newest.parts_at);
}

}  // namespace

absl::StatusOr<ReplaySettings> ResolveSettingsByReplay(const std::shared_ptr<Trace>& trace,
                                                       const SettingsRequest& request) {
  absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  if (!settings.ok()) return settings;
  TorchInference inferred;
  if (settings->torch.inferred) inferred = InferTorchProfile(*trace);
  const bool told = inferred.fitting.size() < 2;
  if (told && !MayHaveGonePools(*trace)) return settings;

  // The newest first.
  std::vector<const TorchProfile*> profiles(inferred.fitting.rbegin(), inferred.fitting.rend());
  if (told) profiles = {settings->torch.profile};
  const std::vector<Attempt> attempts = TryEach(trace, profiles);
  if (attempts.empty()) return settings;
  const Attempt& best = BestOf(attempts);
  if (!told) {
    SettingsRequest chosen = request;
    chosen.torch = std::string(best.profile->release);
    const bool as_recorded = settings->as_recorded;
    settings = ResolveSettings(*trace, chosen);
    if (!settings.ok()) return settings;
    settings->as_recorded = as_recorded;
    settings->torch = {best.profile, true, Why(inferred, best, attempts.front())};
  }
  if (!best.exact && MayHaveGonePools(*trace)) {
    for (std::string& note :
         TellGonePools(trace, settings->recorded_config, *best.profile, best.devices)) {
      settings->notes.push_back(std::move(note));
    }
  }
  return settings;
}

}  // namespace memreplay
