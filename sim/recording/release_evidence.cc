#include "sim/recording/release_evidence.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/recording/exact_replay.h"
#include "sim/recording/torch_inference.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// How the devices of a file replay under the rules of one release.
struct Attempt {
  const TorchProfile* profile = nullptr;
  uint64_t exact_events = 0;  // of all devices
  bool exact = true;          // all events and final blocks
  uint64_t parts_at = 0;      // first event that differs, of the first device that does
};

Attempt Try(const std::vector<Schedule>& schedules, const AllocatorConfig& config,
            const TorchProfile& profile) {
  Attempt attempt{.profile = &profile};
  for (const Schedule& schedule : schedules) {
    const ExactReplayResult replay =
        ReplayAsRecorded(schedule, config, profile, {.stop_at_divergence = true});
    attempt.exact_events += replay.exact_until_event;
    if (replay.first_divergence.has_value() || !replay.final_blocks.exact()) {
      if (attempt.exact) attempt.parts_at = replay.exact_until_event;
      attempt.exact = false;
    }
  }
  return attempt;
}

std::string Why(const TorchInference& inferred, const Attempt& chosen, const Attempt& newest) {
  std::string why = StrCat("inferred: ", inferred.layout, "; taken as ", chosen.profile->release);
  if (&chosen == &newest) return why;
  return why += StrCat(chosen.exact ? ", the newest that replays it" : ", which comes furthest",
                       ": ", newest.profile->release, " parts from it at event ", newest.parts_at);
}

}  // namespace

absl::StatusOr<ReplaySettings> ResolveSettingsByReplay(const std::shared_ptr<const Trace>& trace,
                                                       const SettingsRequest& request) {
  absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  if (!settings.ok() || !settings->torch.inferred) return settings;
  const TorchInference inferred = InferTorchProfile(*trace);
  if (inferred.fitting.size() < 2) return settings;
  std::vector<Schedule> schedules;
  for (size_t device = 0; device < trace->devices.size(); ++device) {
    if (!trace->devices[device].events.empty()) {
      schedules.push_back(Schedule::Build(trace, device));
    }
  }
  if (schedules.empty()) return settings;

  std::vector<Attempt> attempts;
  for (auto profile = inferred.fitting.rbegin(); profile != inferred.fitting.rend(); ++profile) {
    SettingsRequest release;
    release.torch = std::string((*profile)->release);
    const absl::StatusOr<ReplaySettings> candidate = ResolveSettings(*trace, release);
    if (!candidate.ok()) continue;
    attempts.push_back(Try(schedules, candidate->recorded_config, **profile));
    if (attempts.back().exact) break;
  }
  if (attempts.empty()) return settings;
  const Attempt* best = &attempts.front();
  for (const Attempt& attempt : attempts) {
    if (attempt.exact || attempt.exact_events > best->exact_events) best = &attempt;
  }
  SettingsRequest chosen = request;
  chosen.torch = std::string(best->profile->release);
  const bool as_recorded = settings->as_recorded;
  settings = ResolveSettings(*trace, chosen);
  if (!settings.ok()) return settings;
  settings->as_recorded = as_recorded;
  settings->torch = {best->profile, true, Why(inferred, *best, attempts.front())};
  return settings;
}

}  // namespace memreplay
