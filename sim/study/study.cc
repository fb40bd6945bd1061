#include "sim/study/study.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/recording/hypotheses.h"
#include "trace/value/launch.h"
#include "trace/value/status_macros.h"

namespace memreplay {

CategoriesSought SeekCategories(const std::shared_ptr<const Schedule>& recording, size_t threads) {
  CategoriesSought sought;
  sought.meanings = LaunchOn(threads, [recording] { return FindMeanings(*recording); }).share();
  sought.table = LaunchOn(threads, [recording, meanings = sought.meanings] {
                   return CategoriesOverTime(*recording, meanings.get());
                 }).share();
  return sought;
}

Study::Study(std::shared_ptr<const Trace> trace, size_t device_index, ReplaySettings settings,
             Known known)
    : trace_(std::move(trace)),
      device_index_(device_index),
      settings_(std::move(settings)),
      pools_(std::move(known.pools)),
      schedule_(std::move(known.schedule)),
      start_(std::move(known.start)),
      sampled_(std::move(known.exact)),
      sought_(std::move(known.categories)) {}

Study::Study(Schedule schedule, ReplaySettings settings)
    : trace_(schedule.shared_trace()),
      device_index_(schedule.device_index()),
      settings_(std::move(settings)),
      schedule_(std::move(schedule)) {}

const Schedule& Study::schedule() const {
  const std::lock_guard lock(mutex_);
  if (!schedule_.has_value()) {
    schedule_.emplace(Schedule::Build(trace_, device_index_, std::move(pools_)));
  }
  return *schedule_;
}

const Schedule& Study::recording() const {
  const std::lock_guard lock(mutex_);
  if (schedule_.has_value()) return *schedule_;
  if (!recording_.has_value()) {
    recording_.emplace(Schedule::BuildRecorded(trace_, device_index_, pools_));
  }
  return *recording_;
}

const CategoriesSought& Study::Sought() const {
  const Schedule& recording = this->recording();
  const std::lock_guard lock(sought_mutex_);
  if (!sought_.meanings.valid()) {
    sought_ = SeekCategories({std::shared_ptr<void>(), &recording}, /*threads=*/1);
  }
  return sought_;
}

const Meanings& Study::meanings() const { return Sought().meanings.get(); }

const CategoryTable& Study::categories() const { return Sought().table.get(); }

ReplaySettings Study::AsRecordedSettings() const {
  ReplaySettings settings = settings_;
  settings.config = settings.recorded_config;
  return settings;
}

const ExactStart* Study::KnownStart() const {
  const std::lock_guard lock(mutex_);
  if (sampled_.has_value()) return &sampled_->exact;
  if (exact_.has_value()) return &*exact_;
  return start_.has_value() ? &*start_ : nullptr;
}

const SampledReplay& Study::AsRecorded() const {
  const std::lock_guard lock(mutex_);
  if (!sampled_.has_value()) {
    sampled_ = ReplaySampled(schedule(), AsRecordedSettings(), nullptr, /*keep_segments=*/false,
                             /*stop_at_divergence=*/false, KnownStart());
  }
  return *sampled_;
}

SampledReplay Study::WatchAsRecorded(Observer* observer, bool keep_segments) const {
  SampledReplay replay = ReplaySampled(schedule(), AsRecordedSettings(), observer, keep_segments,
                                       /*stop_at_divergence=*/false, KnownStart());
  const std::lock_guard lock(mutex_);
  if (!sampled_.has_value()) sampled_ = replay;
  return replay;
}

ExactReplayResult Study::WatchExactly(Observer* observer) const {
  ExactReplayOptions options;
  options.observer = observer;
  options.start = KnownStart();
  ExactReplayResult replay =
      ReplayAsRecorded(schedule(), settings_.recorded_config, *settings_.torch.profile, options);
  const std::lock_guard lock(mutex_);
  if (!sampled_.has_value() && !exact_.has_value()) exact_ = replay;
  return replay;
}

const ExactReplayResult& Study::Exact() const {
  const std::lock_guard lock(mutex_);
  if (trace_->is_program && !exact_.has_value()) exact_.emplace();
  if (!sampled_.has_value() && exact_.has_value()) return *exact_;
  return AsRecorded().exact;
}

absl::StatusOr<std::optional<Control>> Study::FindControl() const {
  if (trace_->is_program) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (control_.has_value()) return *control_;
  ReplaySettings own = AsRecordedSettings();
  own.TakeDevice(std::nullopt);
  own.fraction.reset();
  own.unlimited = false;
  own = OnCard(own);
  const absl::StatusOr<WhatIfResult> run = Run(own);
  const absl::StatusOr<Bytes> other = PeakInOtherOrder(own);
  if (!run.ok()) {
    control_ = run.status();
  } else if (!other.ok()) {
    control_ = other.status();
  } else {
    control_ = Control{.peak_reserved = run->peak.reserved(),
                       .other_order_peak_reserved = *other,
                       .ooms = run->run.ooms,
                       .device_calls = run->calls.total()};
  }
  return *control_;
}

WhatIfOptions Study::Options(StartPolicy policy) const {
  WhatIfOptions options;
  options.start = policy;
  if (!trace_->is_program) options.recorded_start = &start();
  return options;
}

absl::StatusOr<WhatIfResult> Study::Run(const ReplaySettings& settings, StartPolicy policy,
                                        const CallCosts* costs) const {
  RunKey key = {settings.config,
                settings.torch.profile,
                settings.capacity,
                settings.total,
                settings.fraction,
                settings.order,
                policy,
                costs};
  key.config.conf.clear();  // different texts may be the same settings
  {
    const std::lock_guard lock(runs_mutex_);
    for (const MadeRun& made : runs_) {
      if (made.key == key) return made.result;
    }
  }
  WhatIfOptions options = Options(policy);
  options.costs = costs;
  absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule(), settings, nullptr, options);
  if (result.ok()) {
    result->segments.clear();
    result->segments.shrink_to_fit();
  }
  const std::lock_guard lock(runs_mutex_);
  return runs_.emplace_back(MadeRun{std::move(key), std::move(result)}).result;
}

absl::StatusOr<Bytes> Study::PeakInOtherOrder(const ReplaySettings& settings,
                                              StartPolicy policy) const {
  ReplaySettings other = settings;
  other.order = OtherOrder(settings.order);
  ASSIGN_OR_RETURN(const WhatIfResult result, Run(other, policy));
  return result.peak.reserved();
}

ReplaySettings OnRecordedGpu(const ReplaySettings& settings, const GpuLimits& card) {
  ReplaySettings on_card = settings;
  const std::optional<Bytes> refused = card.refused();
  if (settings.capacity.has_value() || settings.unlimited) return on_card;
  on_card.total = card.total;
  if (!refused.has_value()) return on_card;
  const bool ran_out =
      card.at_oom.has_value() && *card.at_oom >= card.granted && *card.at_oom < *refused;
  on_card.capacity = ran_out ? *card.at_oom : card.granted;
  return on_card;
}

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

// Opens one file: what is found on the way to its studies.
class Opening {
 public:
  Opening(const std::shared_ptr<const Trace>& trace, const SettingsRequest& request, size_t threads)
      : trace_(trace), request_(request), threads_(threads), known_(trace->devices.size()) {}

  absl::StatusOr<OpenedFile> Run() && {
    ASSIGN_OR_RETURN(settings_, ResolveSettings(*trace_, request_));
    FindHypotheses();
    std::optional<Attempt> best;
    if (HasEvents() && (!is_release_given() || !hypotheses_.empty())) {
      BuildSchedules();
      ASSIGN_OR_RETURN(best, ChooseRelease());
    }
    for (size_t device = 0; best.has_value() && device < known_.size(); ++device) {
      if (!schedules_[device].has_value()) continue;
      SampledReplay& replay = *best->devices[device];
      const RecordingFollowed followed = FollowedBy(replay.exact);
      if (!followed.exact && Explain(device, *best->profile, followed)) continue;
      known_[device].schedule = std::move(schedules_[device]);
      known_[device].categories = std::move(sought_[device]);
      // A replay that diverged was stopped before its end.
      if (!followed.divergence.has_value()) {
        known_[device].exact = std::move(replay);
      } else {
        known_[device].start = std::move(replay.exact);
      }
    }
    OpenedFile opened;
    for (size_t device = 0; device < known_.size(); ++device) {
      // The settings are others than those of the attempts.
      if (explained_ != trace_) known_[device].start.reset();
      opened.devices.push_back(
          std::make_unique<const Study>(explained_, device, settings_, std::move(known_[device])));
    }
    opened.settings = std::move(settings_);
    opened.trace = std::move(explained_);
    return opened;
  }

 private:
  bool is_release_given() const { return settings_.torch.fitting.size() < 2; }
  bool HasEvents() const {
    return std::any_of(trace_->devices.begin(), trace_->devices.end(),
                       [](const DeviceTrace& device) { return !device.events.empty(); });
  }

  void FindHypotheses() {
    const bool is_recorded_release = !request_.torch.has_value() || request_.torch_is_as_recorded;
    for (const Hypothesis& hypothesis : AllHypotheses()) {
      if (hypothesis.needs_recorded_release && !is_recorded_release) continue;
      if (hypothesis.applies(*trace_)) hypotheses_.push_back(&hypothesis);
    }
  }

  // Builds the schedules of the devices with events, and seeks what the allocations of the first
  // are for, if there are threads for that.
  void BuildSchedules() {
    schedules_.resize(trace_->devices.size());
    sought_.resize(trace_->devices.size());
    bool seeks = threads_ > 1;
    for (size_t device = 0; device < trace_->devices.size(); ++device) {
      if (trace_->devices[device].events.empty()) continue;
      schedules_[device].emplace(Schedule::Build(trace_, device, {}, [&](Schedule recorded) {
        if (!seeks) return;
        sought_[device] =
            SeekCategories(std::make_shared<const Schedule>(std::move(recorded)), threads_);
      }));
      seeks = false;
    }
  }

  // Returns how the devices replay under the chosen release, which it puts into the settings;
  // nullopt if there is nothing to replay.
  absl::StatusOr<std::optional<Attempt>> ChooseRelease() {
    const std::vector<const TorchProfile*>& fitting = settings_.torch.fitting;
    // The newest profile is first.
    std::vector<const TorchProfile*> profiles(fitting.rbegin(), fitting.rend());
    if (is_release_given()) profiles = {settings_.torch.profile};
    std::vector<Attempt> attempts = TryEach(*trace_, settings_.order, schedules_, profiles);
    if (attempts.empty()) return std::nullopt;
    if (!is_release_given() && !attempts.back().exact) {
      // The file was written in the layout of another release, as tools do, so the rules may be any
      // release's.
      std::vector<Attempt> others = TryEach(*trace_, settings_.order, schedules_, AllBut(profiles));
      if (!others.empty() && others.back().exact) attempts.push_back(std::move(others.back()));
    }
    Attempt& best = BestOf(attempts);
    if (!is_release_given()) RETURN_IF_ERROR(TakeRelease(best, attempts.front()));
    return std::move(best);
  }

  absl::Status TakeRelease(const Attempt& best, const Attempt& first) {
    SettingsRequest chosen = request_;
    chosen.torch = std::string(best.profile->release);
    ProfileChoice torch = std::move(settings_.torch);
    const bool as_recorded = settings_.as_recorded;
    ASSIGN_OR_RETURN(settings_, ResolveSettings(*trace_, chosen));
    settings_.as_recorded = as_recorded;
    if (best.profile != torch.profile) {
      torch.profile = best.profile;
      torch.reason = best.exact ? ProfileReason::kReproduces : ProfileReason::kReproducesMost;
      torch.rejected = first.profile;
      torch.rejected_at = first.differs_at;
    }
    settings_.torch = std::move(torch);
    return absl::OkStatus();
  }

  // Takes the first hypothesis that explains why the device's replay leaves its recording. Returns
  // whether there is one.
  bool Explain(size_t device, const TorchProfile& profile, const RecordingFollowed& followed) {
    for (const Hypothesis* hypothesis : hypotheses_) {
      std::optional<Explanation> explanation = hypothesis->explain(
          {trace_, device, *schedules_[device], settings_.recorded_config, profile, followed});
      if (!explanation.has_value()) continue;
      Take(device, *std::move(explanation));
      return true;
    }
    return false;
  }

  void Take(size_t device, Explanation explanation) {
    known_[device].pools = std::move(explanation.pools);
    for (std::string& note : explanation.notes) settings_.notes.push_back(std::move(note));
    if (explanation.trace != nullptr) explained_ = std::move(explanation.trace);
    if (!explanation.config.has_value()) return;
    if (!request_.conf.has_value()) settings_.config = *explanation.config;
    settings_.recorded_config = *std::move(explanation.config);
  }

  const std::shared_ptr<const Trace>& trace_;
  const SettingsRequest& request_;
  const size_t threads_;
  ReplaySettings settings_;
  std::vector<const Hypothesis*> hypotheses_;  // that apply to the file
  std::vector<std::optional<Schedule>> schedules_;
  std::vector<CategoriesSought> sought_;
  std::vector<Study::Known> known_;
  std::shared_ptr<const Trace> explained_ = trace_;
};

}  // namespace

absl::StatusOr<OpenedFile> StudyTrace(const std::shared_ptr<const Trace>& trace,
                                      const SettingsRequest& request, size_t threads) {
  return Opening(trace, request, threads).Run();
}

}  // namespace memreplay
