#include "report/ask/largest_fit.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "report/words/new_report.h"
#include "report/words/text.h"
#include "sim/observe/phase_usage.h"
#include "sim/run/parallel.h"
#include "sim/study/what_if.h"
#include "sim/whatif/largest_fit.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"

namespace memreplay {
namespace {

constexpr int64_t kLimit = 1 << 20;
// Limits for one setting: events that are replayed before the last run, and runs.
constexpr uint64_t kMaxEvents = 12'000'000;
constexpr uint64_t kFailedEvents = 500'000;  // what a schedule may have had before it failed
constexpr uint64_t kMaxRuns = 1024;

absl::StatusOr<FitTrial> Try(synth::TrainingRun run, int64_t value,
                             const SettingsRequest& request) {
  const auto trace = std::make_shared<const Trace>(std::move(run.program));
  ASSIGN_OR_RETURN(const ReplaySettings settings, ResolveSettings(*trace, request));
  PhaseUsage usage(*trace);
  const Schedule schedule = Schedule::Build(trace, 0);
  ASSIGN_OR_RETURN(const WhatIfResult result, ReplayWhatIf(schedule, settings, &usage));
  FitTrial trial{
      value, usage.highest().allocated, usage.peak_reserved(), usage.highest().phase, usage.oom(),
      false};
  trial.is_hopeless = trial.oom.has_value() &&
                      PeakLiveOf(LifetimesOf(schedule)).requested > request.capacity.value();
  return trial;
}

// Tries values under one setting, as long as the limits allow.
FitTrials TryAll(const LargestFitQuestion& question, const SettingsRequest& request) {
  FitTrials tried;
  tried.conf = request.conf.value_or("");
  uint64_t events = 0;
  tried.found = FindLargestFit(kLimit, kMaxRuns, [&](int64_t value) {
    if (!tried.refused.empty()) return FitOutcome::kNever;
    if (events > kMaxEvents) return FitOutcome::kUntried;
    absl::StatusOr<synth::TrainingRun> run = question.make_run(value);
    if (!run.ok()) {
      events += kFailedEvents;
      return FitOutcome::kNoValue;
    }
    for (const DeviceTrace& device : run->program.devices) events += device.events.size();
    absl::StatusOr<FitTrial> trial = Try(*std::move(run), value, request);
    if (!trial.ok()) {
      tried.refused = std::string(trial.status().message());
      return FitOutcome::kNever;
    }
    tried.trials.push_back(*std::move(trial));
    if (!tried.trials.back().oom.has_value()) return FitOutcome::kFits;
    return tried.trials.back().is_hopeless ? FitOutcome::kNever : FitOutcome::kRunsOut;
  });
  std::sort(tried.trials.begin(), tried.trials.end(),
            [](const FitTrial& a, const FitTrial& b) { return a.value < b.value; });
  return tried;
}

}  // namespace

proto::Report LargestFitReport(const LargestFitContext& context,
                               const std::vector<FitTrials>& settings) {
  proto::Report report = NewReport("fit");
  proto::LargestFit& out = *report.mutable_largest_fit();
  out.set_model(context.model);
  out.set_key(context.key);
  out.set_torch_release(context.torch);
  out.set_capacity_bytes(context.capacity.signed_value());
  out.set_context_bytes(context.cuda_context.bytes);
  out.set_context_reason(context.cuda_context.reason);
  for (const FitTrials& tried : settings) {
    proto::LargestFit::Setting& setting = *out.add_settings();
    setting.set_conf(CleanText(tried.conf));
    setting.set_refused(CleanText(tried.refused));
    setting.set_largest(tried.found.largest.value_or(0));
    setting.set_safe(tried.found.safe.value_or(0));
    setting.set_safe_is_proven(tried.found.safe_is_proven);
    setting.set_largest_is_proven(tried.found.largest_is_proven);
    for (const FitTrial& trial : tried.trials) {
      proto::LargestFit::Trial& t = *setting.add_trials();
      t.set_value(trial.value);
      t.set_fits(!trial.oom.has_value());
      t.set_peak_allocated_bytes(trial.peak_allocated.signed_value());
      t.set_peak_reserved_bytes(trial.peak_reserved.signed_value());
      t.set_phase(CleanText(trial.oom.has_value() ? trial.oom->phase : trial.peak_phase));
      if (!trial.oom.has_value()) continue;
      t.set_label(CleanText(trial.oom->label));
      t.set_tensor(CleanText(trial.oom->name));
      t.set_size_bytes(trial.oom->size.signed_value());
    }
  }
  return report;
}

absl::StatusOr<proto::Report> AskLargestFit(const LargestFitQuestion& question) {
  ASSIGN_OR_RETURN(const synth::TrainingRun smallest, question.make_run(1));
  SettingsRequest request = question.settings;
  if (!request.torch.has_value() && !smallest.torch_version.empty()) {
    request.torch = AllocatorRelease(smallest.torch_version);
  }
  if (!request.capacity.has_value()) request.capacity = smallest.program.total_memory;
  if (!request.capacity.has_value()) {
    return absl::InvalidArgumentError(
        StrCat(question.key, "=? requires --capacity, the memory available to the allocator"));
  }
  ASSIGN_OR_RETURN(const ProfileChoice profile, ChooseProfile(smallest.program, request.torch));
  std::vector<std::string> confs = question.confs;
  if (confs.empty()) confs = UsualConfs(*profile.profile);
  std::vector<FitTrials> tried(confs.size());
  const size_t threads = std::max<size_t>(1, std::thread::hardware_concurrency());
  ParallelFor(confs.size(), threads, [&](size_t i) {
    SettingsRequest one = request;
    one.conf = confs[i];
    tried[i] = TryAll(question, one);
  });
  LargestFitContext context;
  context.model = question.model;
  context.key = question.key;
  context.torch = std::string(profile.profile->release);
  context.capacity = *request.capacity;
  context.cuda_context = question.cuda_context;
  return LargestFitReport(context, tried);
}

}  // namespace memreplay
