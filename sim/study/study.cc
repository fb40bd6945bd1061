#include "sim/study/study.h"

#include <utility>

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

}  // namespace memreplay
