#include "report/ask/largest_fit.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "report/answer/largest_fit_report.h"
#include "sim/observe/phase_usage.h"
#include "sim/run/parallel.h"
#include "sim/whatif/largest_fit.h"
#include "sim/whatif/what_if.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

constexpr int64_t kLimit = 1 << 20;

absl::StatusOr<FitTrial> Try(synth::TrainingRun run, int64_t value,
                             const SettingsRequest& request) {
  const auto trace = std::make_shared<const Trace>(std::move(run.program));
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, request);
  if (!settings.ok()) return settings.status();
  PhaseUsage usage(*trace);
  const absl::StatusOr<WhatIfResult> result =
      ReplayWhatIf(Schedule::Build(trace, 0), *settings, &usage);
  if (!result.ok()) return result.status();
  return FitTrial{value, usage.highest().allocated, usage.peak_reserved(), usage.highest().phase,
                  usage.oom()};
}

// Under one setting. A value that the model refuses does not fit.
FitTrials TryAll(const LargestFitQuestion& question, const SettingsRequest& request) {
  FitTrials tried;
  tried.conf = request.conf.value_or("");
  tried.found = FindLargestFit(kLimit, [&](int64_t value) {
    if (!tried.refused.empty()) return false;
    absl::StatusOr<synth::TrainingRun> run = question.make_run(value);
    if (!run.ok()) return false;
    absl::StatusOr<FitTrial> trial = Try(*std::move(run), value, request);
    if (!trial.ok()) {
      tried.refused = std::string(trial.status().message());
      return false;
    }
    tried.trials.push_back(*std::move(trial));
    return !tried.trials.back().oom.has_value();
  });
  std::sort(tried.trials.begin(), tried.trials.end(),
            [](const FitTrial& a, const FitTrial& b) { return a.value < b.value; });
  return tried;
}

}  // namespace

absl::StatusOr<proto::Report> AskLargestFit(const LargestFitQuestion& question) {
  const absl::StatusOr<synth::TrainingRun> smallest = question.make_run(1);
  if (!smallest.ok()) return smallest.status();
  SettingsRequest request = question.settings;
  if (!request.torch.has_value() && !smallest->torch_version.empty()) {
    request.torch = AllocatorRelease(smallest->torch_version);
  }
  if (!request.capacity.has_value()) request.capacity = smallest->program.total_memory;
  if (!request.capacity.has_value()) {
    return absl::InvalidArgumentError(
        StrCat(question.key, "=? wants --capacity: what the allocator can get"));
  }
  const absl::StatusOr<ProfileChoice> profile = ChooseProfile(smallest->program, request.torch);
  if (!profile.ok()) return profile.status();
  std::vector<std::string> confs = question.confs;
  if (confs.empty()) {
    confs.push_back("");
    if (profile->profile->expandable_segments) confs.push_back("expandable_segments:True");
  }
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
  context.torch = std::string(profile->profile->release);
  context.capacity = *request.capacity;
  context.cuda_context = question.cuda_context;
  return LargestFitReport(context, tried);
}

}  // namespace memreplay
