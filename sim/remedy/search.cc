#include "sim/remedy/search.h"

#include <algorithm>
#include <utility>

#include "sim/settings/allocator_config.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

constexpr double kNegligible = 0.005;  // of the peak
constexpr size_t kMaxTogether = 3;
constexpr int64_t kMaxScaled = int64_t{1} << 20;  // a value that fits any device is not the limit
constexpr uint64_t kMaxValues = 16;

double CostOf(const Remedy& remedy) {
  static constexpr double kCosts[] = {1, 2, 2, 2, 4, 6, 8, 10, 60};  // by RemedyKind
  const double more = remedy.kind == RemedyKind::kCheckpoint ? 30 * remedy.share : 0;
  return kCosts[static_cast<size_t>(remedy.kind)] + more;
}

// Returns whether two remedies do the same to different degrees, so that only one makes sense.
bool Exclude(const Remedy& a, const Remedy& b) {
  const auto is_of_activations = [](const Remedy& remedy) {
    return remedy.kind == RemedyKind::kCheckpoint || remedy.kind == RemedyKind::kHost;
  };
  return a.kind == b.kind || (is_of_activations(a) && is_of_activations(b));
}

// A schedule with some remedies, and the settings to replay it under.
struct Edited {
  Schedule schedule;
  ReplaySettings settings;
};

absl::StatusOr<Edited> Edit(const PassFacts& facts, absl::Span<const Remedy> all,
                            absl::Span<const size_t> chosen, ReplaySettings settings) {
  ScheduleEdit edit(*facts.schedule, facts.spans);
  if (facts.refused.has_value()) {
    edit.StopAfter(*facts.refused);
    for (uint32_t i = 0; i < *facts.refused; ++i) {
      if (facts.made[i] != kNoAllocation && RanOutWhenRecorded(*facts.schedule, i)) edit.Skip(i);
    }
  }
  for (const size_t i : chosen) {
    const Remedy& remedy = all[i];
    if (remedy.kind != RemedyKind::kSettings) {
      ApplyRemedy(facts, remedy, &edit);
      continue;
    }
    settings.config = AllocatorConfig();
    RETURN_IF_ERROR(ParseAllocatorConf(remedy.conf, *settings.torch.profile, &settings.config));
  }
  return Edited{edit.Apply(), std::move(settings)};
}

absl::StatusOr<WhatIfResult> ReplayEdited(const Study& study, const Edited& edited, bool is_fresh,
                                          Observer* observer = nullptr) {
  return ReplayWhatIf(edited.schedule, edited.settings, observer,
                      study.Options(is_fresh ? StartPolicy::kFresh : StartPolicy::kRecorded));
}

void LimitTo(std::optional<Bytes> capacity, ReplaySettings* settings) {
  settings->TakeDevice(capacity);
  settings->unlimited = !capacity.has_value();
}

class RemedyTrials {
 public:
  RemedyTrials(const Study& study, const ReplaySettings& settings, PassFacts facts,
               ProgressSink* progress)
      : study_(study), settings_(settings), progress_(progress) {
    found_.facts = std::move(facts);
    found_.goal = settings.capacity;
    found_.is_cut = found_.facts.refused.has_value();
    // If memory ran out, the start is part of the reason.
    found_.is_fresh = !study.schedule().is_cold() && !found_.is_cut;
  }

  absl::StatusOr<RemedySearch> Run() {
    found_.remedies = FindRemedies(found_.facts);
    AddSettings();
    std::stable_sort(found_.remedies.begin(), found_.remedies.end(),
                     [](const Remedy& a, const Remedy& b) { return CostOf(a) < CostOf(b); });
    if (progress_ != nullptr) progress_->SetTotal(kMaxReplays);
    ASSIGN_OR_RETURN(found_.as_is, Try({}));
    for (size_t i = 0; i < found_.remedies.size(); ++i) {
      RETURN_IF_ERROR(Add({i}));
    }
    RETURN_IF_ERROR(found_.goal.has_value() ? ReachGoal() : Combine());
    return std::move(found_);
  }

 private:
  void AddSettings() {
    const AllocatorConfig& now = settings_.config;
    if (now.backend != Backend::kNative || now.expandable_segments) return;
    const std::string conf =
        now.conf.empty() ? "expandable_segments:True" : now.conf + ",expandable_segments:True";
    AllocatorConfig config;
    if (!ParseAllocatorConf(conf, *settings_.torch.profile, &config).ok()) return;
    if (now.max_split_size != kUnlimited) return;  // together they may grow without bound
    Remedy remedy;
    remedy.conf = conf;
    found_.remedies.push_back(std::move(remedy));
  }

  bool IsOver() {
    const size_t next = found_.goal.has_value() ? 2 : 1;  // what Try() may take
    if (found_.replays + next <= kMaxReplays) return false;
    found_.is_complete = false;
    return true;
  }

  // Adds the run, unless the search is over.
  absl::Status Add(std::vector<size_t> remedies) {
    if (IsOver()) return absl::OkStatus();
    ASSIGN_OR_RETURN(RemedyRun run, Try(std::move(remedies)));
    found_.runs.push_back(std::move(run));
    return absl::OkStatus();
  }

  absl::StatusOr<RemedyRun> Try(std::vector<size_t> remedies) {
    RemedyRun run;
    run.remedies = std::move(remedies);
    run.cost = SetCost(run.remedies);
    ASSIGN_OR_RETURN(Edited edited, Edit(found_.facts, found_.remedies, run.remedies, settings_));
    LimitTo(std::nullopt, &edited.settings);
    ASSIGN_OR_RETURN(const WhatIfResult unlimited, Replay(edited));
    run.peak_reserved = unlimited.peak.reserved();
    run.peak_allocated = unlimited.peak.allocated();
    if (!found_.goal.has_value()) return run;
    run.survives = run.peak_reserved <= *found_.goal;
    if (run.survives || run.peak_allocated > *found_.goal) return run;
    // Cached memory can be released and requested again.
    LimitTo(found_.goal, &edited.settings);
    ASSIGN_OR_RETURN(const WhatIfResult limited, Replay(edited));
    if (limited.run.ooms > 0) return run;
    // The run is the same on a device that has only what was reserved.
    run.survives = true;
    run.peak_reserved = limited.peak.reserved();
    run.peak_allocated = limited.peak.allocated();
    return run;
  }

  absl::StatusOr<WhatIfResult> Replay(const Edited& edited) {
    ++found_.replays;
    absl::StatusOr<WhatIfResult> result = ReplayEdited(study_, edited, found_.is_fresh);
    if (progress_ != nullptr) progress_->AddDone();
    return result;
  }

  bool Helps(const RemedyRun& run) const {
    const auto least = [&](Bytes before) {
      return static_cast<double>(before.value()) * (1 - kNegligible);
    };
    return static_cast<double>(run.peak_reserved.value()) < least(found_.as_is.peak_reserved) ||
           static_cast<double>(run.peak_allocated.value()) < least(found_.as_is.peak_allocated);
  }

  std::vector<size_t> Helpful() const {
    std::vector<size_t> helpful;
    for (const RemedyRun& run : found_.runs) {
      if (run.remedies.size() == 1 && Helps(run)) helpful.push_back(run.remedies[0]);
    }
    return helpful;
  }

  const RemedyRun* Find(const std::vector<size_t>& remedies) const {
    const auto found = std::find_if(found_.runs.begin(), found_.runs.end(),
                                    [&](const RemedyRun& run) { return run.remedies == remedies; });
    return found == found_.runs.end() ? nullptr : &*found;
  }

  // Tries two together, then three, the cheapest first, until one survives.
  absl::Status ReachGoal() {
    if (found_.as_is.survives) return absl::OkStatus();
    const auto survives = [](const RemedyRun& run) { return run.survives; };
    std::vector<size_t> helpful = Helpful();
    // Settings may help only in combination, because they change what is cached.
    for (size_t i = 0; i < found_.remedies.size(); ++i) {
      const bool is_cheap = found_.remedies[i].kind == RemedyKind::kSettings;
      if (is_cheap && std::find(helpful.begin(), helpful.end(), i) == helpful.end()) {
        helpful.push_back(i);
      }
    }
    std::sort(helpful.begin(), helpful.end());
    for (size_t size = 2; size <= kMaxTogether; ++size) {
      if (std::any_of(found_.runs.begin(), found_.runs.end(), survives)) return absl::OkStatus();
      std::vector<std::vector<size_t>> sets = Sets(helpful, size);
      std::stable_sort(sets.begin(), sets.end(),
                       [&](const auto& a, const auto& b) { return SetCost(a) < SetCost(b); });
      for (std::vector<size_t>& set : sets) {
        if (IsOver()) return absl::OkStatus();
        RETURN_IF_ERROR(Add(std::move(set)));
        if (found_.runs.back().survives) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  // Returns whether a remedy makes no sense together with one of a set.
  bool IsExcluded(size_t remedy, const std::vector<size_t>& set) const {
    return std::any_of(set.begin(), set.end(), [&](size_t other) {
      return Exclude(found_.remedies[remedy], found_.remedies[other]);
    });
  }

  double SetCost(const std::vector<size_t>& set) const {
    double cost = 0;
    for (const size_t i : set) cost += CostOf(found_.remedies[i]);
    return cost;
  }

  std::vector<std::vector<size_t>> Sets(const std::vector<size_t>& of, size_t size) const {
    std::vector<std::vector<size_t>> sets = {{}};
    for (size_t n = 0; n < size; ++n) {
      std::vector<std::vector<size_t>> larger;
      for (const std::vector<size_t>& set : sets) {
        for (const size_t i : of) {
          if ((!set.empty() && i <= set.back()) || IsExcluded(i, set)) continue;
          larger.push_back(set);
          larger.back().push_back(i);
        }
      }
      sets = std::move(larger);
    }
    return sets;
  }

  // Starts with the best and adds each other that still lowers the peak.
  absl::Status Combine() {
    std::vector<size_t> helpful = Helpful();
    std::stable_sort(helpful.begin(), helpful.end(), [&](size_t a, size_t b) {
      return Find({a})->peak_reserved < Find({b})->peak_reserved;
    });
    std::vector<size_t> together;
    Bytes best = found_.as_is.peak_reserved;
    for (const size_t i : helpful) {
      if (IsExcluded(i, together)) continue;
      if (together.empty()) {
        together = {i};
        best = Find({i})->peak_reserved;
        continue;
      }
      std::vector<size_t> more = together;
      more.push_back(i);
      std::sort(more.begin(), more.end());
      if (IsOver()) return absl::OkStatus();
      RETURN_IF_ERROR(Add(more));
      const Bytes now = found_.runs.back().peak_reserved;
      if (static_cast<double>(now.value()) <
          static_cast<double>(best.value()) * (1 - kNegligible)) {
        best = now;
        together = std::move(more);
      } else {
        found_.runs.pop_back();  // this part is not needed
      }
    }
    return absl::OkStatus();
  }

  const Study& study_;
  const ReplaySettings& settings_;
  ProgressSink* const progress_;
  RemedySearch found_;
};

}  // namespace

absl::StatusOr<std::optional<RemedySearch>> SearchRemedies(const Study& study,
                                                           const Schedule& schedule,
                                                           const ReplaySettings& settings,
                                                           ProgressSink* progress) {
  std::optional<PassFacts> facts = FindPassFacts(schedule, study.meanings());
  if (!facts.has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(RemedySearch found,
                   RemedyTrials(study, settings, *std::move(facts), progress).Run());
  return std::optional<RemedySearch>(std::move(found));
}

absl::Status WatchRun(const Study& study, const ReplaySettings& settings,
                      const RemedySearch& search, const RemedyRun& run,
                      absl::FunctionRef<Observer*(const Schedule& edited)> watch) {
  ASSIGN_OR_RETURN(Edited edited, Edit(search.facts, search.remedies, run.remedies, settings));
  LimitTo(search.goal, &edited.settings);
  return ReplayEdited(study, edited, search.is_fresh, watch(edited.schedule)).status();
}

absl::StatusOr<LargestFit> FindLargestValue(const Study& study, const ReplaySettings& settings,
                                            const RemedySearch& search, const RemedyRun& run,
                                            const Scaling& scaling) {
  absl::Status failed;
  const auto replay = [&](const Schedule& schedule) -> absl::StatusOr<FitOutcome> {
    PassFacts facts = search.facts;
    facts.schedule = &schedule;
    facts.spans = AllocationSpans(schedule);
    ASSIGN_OR_RETURN(Edited edited, Edit(facts, search.remedies, run.remedies, settings));
    LimitTo(search.goal, &edited.settings);
    ASSIGN_OR_RETURN(const WhatIfResult result, ReplayEdited(study, edited, search.is_fresh));
    if (result.run.ooms == 0) return FitOutcome::kFits;
    return PeakLiveOf(LifetimesOf(edited.schedule)).requested > *search.goal ? FitOutcome::kNever
                                                                             : FitOutcome::kRunsOut;
  };
  const auto outcome = [&](int64_t value) {
    const absl::StatusOr<FitOutcome> replayed = replay(scaling.At(value));
    if (replayed.ok()) return *replayed;
    failed = replayed.status();
    return FitOutcome::kNever;
  };
  LargestFit found = FindLargestFit(kMaxScaled, kMaxValues, outcome);
  if (!failed.ok()) return failed;
  return found;
}

}  // namespace memreplay
