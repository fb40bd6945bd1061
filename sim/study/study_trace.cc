#include "sim/study/study_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/recording/changed_settings.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/gone_pools.h"
#include "sim/recording/pool_options.h"
#include "sim/recording/torch_inference.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// How the devices of a file replay under the rules of one release.
struct Attempt {
  const TorchProfile* profile = nullptr;
  std::vector<std::optional<SampledReplay>> devices = {};  // absent if it has no events
  uint64_t exact_events = 0;                               // of all devices
  bool exact = true;                                       // for all events and final blocks
  uint64_t differs_at = 0;  // first event that differs, of the first device with one
};

Attempt Try(const std::vector<std::optional<Schedule>>& schedules, const ReplaySettings& settings) {
  Attempt attempt{.profile = settings.torch.profile};
  for (const std::optional<Schedule>& schedule : schedules) {
    std::optional<SampledReplay>& device = attempt.devices.emplace_back();
    if (!schedule.has_value()) continue;
    device = ReplaySampled(*schedule, settings, nullptr, false, /*stop_at_divergence=*/true);
    const RecordingFollowed followed = FollowedBy(device->exact);
    attempt.exact_events += followed.until_event;
    if (!followed.exact) {
      if (attempt.exact) attempt.differs_at = followed.until_event;
      attempt.exact = false;
    }
  }
  return attempt;
}

// Tries profiles in the given order, up to the first that is exact.
std::vector<Attempt> TryEach(const Trace& trace, AddressOrder order,
                             const std::vector<std::optional<Schedule>>& schedules,
                             const std::vector<const TorchProfile*>& profiles) {
  std::vector<Attempt> attempts;
  for (const TorchProfile* profile : profiles) {
    SettingsRequest release;
    release.torch = std::string(profile->release);
    release.order = order;  // which is found by reading the events
    absl::StatusOr<ReplaySettings> settings = ResolveSettings(trace, release);
    if (!settings.ok()) continue;
    settings->config = settings->recorded_config;
    attempts.push_back(Try(schedules, *settings));
    if (attempts.back().exact) break;
  }
  return attempts;
}

// Returns all other profiles, the newest first.
std::vector<const TorchProfile*> AllBut(const std::vector<const TorchProfile*>& tried) {
  std::vector<const TorchProfile*> others;
  for (const TorchProfile& profile : AllTorchProfiles()) {
    if (std::find(tried.begin(), tried.end(), &profile) == tried.end()) others.push_back(&profile);
  }
  std::reverse(others.begin(), others.end());
  return others;
}

// Returns the best attempt: the exact one, which is the last, or the first of the best ones.
Attempt& BestOf(std::vector<Attempt>& attempts) {
  if (attempts.back().exact) return attempts.back();
  return *std::max_element(
      attempts.begin(), attempts.end(),
      [](const Attempt& a, const Attempt& b) { return a.exact_events < b.exact_events; });
}

}  // namespace

absl::StatusOr<StudiedTrace> StudyTrace(const std::shared_ptr<const Trace>& trace,
                                        const SettingsRequest& request, size_t threads) {
  absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  if (!settings.ok()) return settings.status();
  const std::vector<const TorchProfile*> fitting = settings->torch.fitting;
  const bool told = fitting.size() < 2;
  std::vector<Study::Known> known(trace->devices.size());
  std::shared_ptr<const Trace> explained = trace;
  // What another release would have done differently is not the settings' fault.
  const bool may_change = (!request.torch.has_value() || request.torch_is_as_recorded) &&
                          MayHaveChangedSettings(*trace);
  if (!told || may_change || MayHavePoolOptions(*trace) || MayHaveGonePools(*trace)) {
    // The newest profile is first.
    std::vector<const TorchProfile*> profiles(fitting.rbegin(), fitting.rend());
    if (told) profiles = {settings->torch.profile};
    std::vector<std::optional<Schedule>> schedules(trace->devices.size());
    std::vector<CategoriesSought> sought(trace->devices.size());
    bool is_sought = false;
    for (size_t device = 0; device < trace->devices.size(); ++device) {
      if (trace->devices[device].events.empty()) continue;
      const bool seeks = threads > 1 && !is_sought;
      is_sought = true;
      schedules[device].emplace(Schedule::Build(trace, device, {}, [&](Schedule recorded) {
        if (!seeks) return;
        sought[device] =
            SeekCategories(std::make_shared<const Schedule>(std::move(recorded)), threads);
      }));
    }
    std::vector<Attempt> attempts;
    if (std::any_of(schedules.begin(), schedules.end(),
                    [](const auto& schedule) { return schedule.has_value(); })) {
      attempts = TryEach(*trace, settings->order, schedules, profiles);
      if (!told && !attempts.empty() && !attempts.back().exact) {
        // The file was written in the layout of another release, as tools do, so the rules may be
        // any release's.
        std::vector<Attempt> others = TryEach(*trace, settings->order, schedules, AllBut(profiles));
        if (!others.empty() && others.back().exact) attempts.push_back(std::move(others.back()));
      }
    }
    if (!attempts.empty()) {
      Attempt& best = BestOf(attempts);
      if (!told) {
        SettingsRequest chosen = request;
        chosen.torch = std::string(best.profile->release);
        ProfileChoice torch = settings->torch;
        const bool as_recorded = settings->as_recorded;
        settings = ResolveSettings(*trace, chosen);
        if (!settings.ok()) return settings.status();
        settings->as_recorded = as_recorded;
        if (best.profile != torch.profile) {
          torch.profile = best.profile;
          torch.reason = best.exact ? ProfileReason::kReproduces : ProfileReason::kReproducesMost;
          torch.rejected = attempts.front().profile;
          torch.rejected_at = attempts.front().differs_at;
        }
        settings->torch = std::move(torch);
      }
      for (size_t device = 0; device < trace->devices.size(); ++device) {
        if (!schedules[device].has_value()) continue;
        SampledReplay& replay = *best.devices[device];
        const RecordingFollowed followed = FollowedBy(replay.exact);
        if (!followed.exact && MayHavePoolOptions(*trace)) {
          if (std::optional<PoolOptions> options = FindPoolOptions(
                  *schedules[device], settings->recorded_config, *best.profile, followed)) {
            known[device].pools = std::move(options->pools);
            settings->notes.push_back(std::move(options->note));
            continue;
          }
        }
        if (!followed.exact && MayHaveGonePools(*schedules[device])) {
          if (std::optional<GonePools> gone = FindGonePools(
                  trace, device, settings->recorded_config, *best.profile, followed)) {
            known[device].pools = std::move(gone->pools);
            settings->notes.push_back(std::move(gone->note));
            continue;
          }
        }
        if (!followed.exact && may_change) {
          std::optional<ChangedSettings> changed = FindChangedSettings(
              *schedules[device], settings->recorded_config, *best.profile, followed);
          if (changed.has_value() && !changed->followed.exact) {
            // Both: pools that are gone explain what the changes leave open.
            if (std::optional<GonePools> gone = FindGonePools(
                    changed->trace, device, changed->config, *best.profile, changed->followed)) {
              known[device].pools = std::move(gone->pools);
              settings->notes.push_back(std::move(gone->note));
              changed->followed.exact = true;
            }
          }
          if (changed.has_value() && changed->followed.exact) {
            explained = std::move(changed->trace);
            if (!request.conf.has_value()) settings->config = changed->config;
            settings->recorded_config = std::move(changed->config);
            settings->notes.push_back(std::move(changed->note));
            continue;
          }
        }
        known[device].schedule = std::move(schedules[device]);
        known[device].categories = std::move(sought[device]);
        // A replay that diverged was stopped before its end.
        if (!followed.divergence.has_value()) {
          known[device].exact = std::move(replay);
        } else {
          known[device].start = std::move(replay.exact);
        }
      }
    }
  }
  StudiedTrace studied;
  if (explained != trace) {
    // The settings are others than those of the attempts.
    for (Study::Known& device : known) device.start.reset();
  }
  for (size_t device = 0; device < trace->devices.size(); ++device) {
    studied.devices.push_back(
        std::make_unique<const Study>(explained, device, *settings, std::move(known[device])));
  }
  studied.settings = *std::move(settings);
  studied.trace = std::move(explained);
  return studied;
}

absl::StatusOr<OpenedFile> StudyFile(const std::shared_ptr<const Trace>& trace,
                                     const SettingsRequest& request, size_t threads) {
  ASSIGN_OR_RETURN(StudiedTrace studied, StudyTrace(trace, request, threads));
  std::shared_ptr<const Trace> explained = studied.trace;
  return OpenedFile{std::move(explained), std::move(studied)};
}

}  // namespace memreplay
