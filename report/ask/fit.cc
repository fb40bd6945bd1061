#include "report/ask/fit.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "report/ask/replay.h"
#include "report/ask/sweep.h"
#include "report/device/device_report.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "sim/observe/phase_usage.h"
#include "sim/run/parallel.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "sim/whatif/smallest_capacity.h"
#include "sim/whatif/sweep.h"
#include "sim/workload/lifetimes.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns a row for each of `confs`, or of the usual settings if there are none, and only one for
// settings that mean the same.
std::vector<FitRow> RowsFor(const ReplaySettings& settings, std::vector<std::string> confs,
                            std::vector<ReplaySettings>* meanings) {
  std::vector<FitRow> rows;
  const bool given = !confs.empty();
  if (!given) {
    rows.push_back({{settings.config.conf, settings.fraction}, true, "", {}, {}});
    meanings->push_back(settings);
    confs = UsualConfs(*settings.torch.profile);
  }
  for (const std::string& conf : confs) {
    FitRow row{{conf, settings.fraction}, false, "", {}, {}};
    absl::StatusOr<ReplaySettings> meaning = SettingsFor(settings, row.candidate);
    if (!meaning.ok()) {
      row.refused = std::string(meaning.status().message());
      meaning = settings;
    } else if (!given && absl::c_any_of(*meanings, [&](const ReplaySettings& other) {
                 AllocatorConfig config = other.config;
                 config.conf = meaning->config.conf;
                 config.backend_loaded = meaning->config.backend_loaded;
                 return config == meaning->config;
               })) {
      continue;
    }
    rows.push_back(std::move(row));
    meanings->push_back(*std::move(meaning));
  }
  return rows;
}

constexpr int64_t kLimit = 1 << 20;
// Limits for one setting: events that are replayed before the last run, and runs.
constexpr uint64_t kMaxEvents = 12'000'000;
constexpr uint64_t kFailedEvents = 500'000;  // what a schedule may have had before it failed
constexpr uint64_t kMaxRuns = 1024;

// Tries a run, and says in `trial` what it takes. Error: settings that the release rejects.
absl::StatusOr<FitOutcome> Try(synth::TrainingRun run, const SettingsRequest& request,
                               proto::LargestFit::Trial* trial) {
  const auto trace = std::make_shared<const Trace>(std::move(run.program));
  ASSIGN_OR_RETURN(const ReplaySettings settings, ResolveSettings(*trace, request));
  PhaseUsage usage(*trace);
  const Schedule schedule = Schedule::Build(trace, 0);
  ASSIGN_OR_RETURN(const WhatIfResult result, ReplayWhatIf(schedule, settings, &usage));
  const std::optional<PhaseOom>& oom = usage.oom();
  trial->set_fits(!oom.has_value());
  trial->set_peak_allocated_bytes(usage.highest().allocated.signed_value());
  trial->set_peak_reserved_bytes(usage.peak_reserved().signed_value());
  trial->set_phase(CleanText(oom.has_value() ? oom->phase : usage.highest().phase));
  if (!oom.has_value()) return FitOutcome::kFits;
  trial->set_label(CleanText(oom->label));
  trial->set_tensor(CleanText(oom->name));
  trial->set_size_bytes(oom->size.signed_value());
  // More may be live at once than the device has.
  const Bytes live = PeakLiveOf(LifetimesOf(schedule)).requested;
  return live > request.capacity.value() ? FitOutcome::kNever : FitOutcome::kRunsOut;
}

// Tries values under one setting, as long as the limits allow.
proto::LargestFit::Setting TryAll(const LargestFitQuestion& question,
                                  const SettingsRequest& request) {
  proto::LargestFit::Setting tried;
  tried.set_conf(CleanText(request.conf.value_or("")));
  uint64_t events = 0;
  const LargestFit found = FindLargestFit(kLimit, kMaxRuns, [&](int64_t value) {
    if (!tried.refused().empty()) return FitOutcome::kNever;
    if (events > kMaxEvents) return FitOutcome::kUntried;
    absl::StatusOr<synth::TrainingRun> run = question.make_run(value);
    if (!run.ok()) {
      events += kFailedEvents;
      return FitOutcome::kNoValue;
    }
    for (const DeviceTrace& device : run->program.devices) events += device.events.size();
    proto::LargestFit::Trial trial;
    trial.set_value(value);
    const absl::StatusOr<FitOutcome> outcome = Try(*std::move(run), request, &trial);
    if (!outcome.ok()) {
      tried.set_refused(CleanText(ToStd(outcome.status().message())));
      return FitOutcome::kNever;
    }
    *tried.add_trials() = std::move(trial);
    return *outcome;
  });
  absl::c_sort(*tried.mutable_trials(),
               [](const auto& a, const auto& b) { return a.value() < b.value(); });
  tried.set_largest(found.largest.value_or(0));
  tried.set_safe(found.safe.value_or(0));
  tried.set_safe_is_proven(found.safe_is_proven);
  tried.set_largest_is_proven(found.largest_is_proven);
  return tried;
}

}  // namespace

void AddFits(const std::vector<FitRow>& rows, const PeakLive& live, const Packing& packing,
             proto::DeviceReport* report) {
  report->set_mode(proto::Mode::fit);
  proto::Fits& fits = *report->mutable_fits();
  FillBounds(live, packing, fits.mutable_lower_bounds());
  const auto bytes = [](const std::optional<Bytes>& size) {
    return size.value_or(Bytes()).signed_value();
  };
  for (const FitRow& row : rows) {
    proto::Fits::Row& to = *fits.add_rows();
    to.set_conf(CleanText(row.candidate.conf));
    to.set_memory_fraction(row.candidate.fraction.value_or(0));
    to.set_is_current(row.is_current);
    to.set_refused(CleanText(row.refused));
    to.set_smallest_bytes(bytes(row.found.capacity));
    to.set_safe_bytes(bytes(row.found.safe_capacity));
    to.set_proven_until_bytes(bytes(row.found.proven_until));
    to.set_smallest_is_proven(row.found.is_smallest);
    to.set_other_order_safe_bytes(bytes(row.other_order.safe_capacity));
    to.set_without_retries_bytes(bytes(row.found.without_retries));
    to.set_unlimited_peak_reserved_bytes(row.found.unlimited_peak_reserved.signed_value());
    for (const CapacityProbe& probe : row.found.probes) {
      proto::Fits::Probe& out = *to.add_probes();
      out.set_capacity_bytes(probe.capacity.signed_value());
      out.set_same_until_bytes(bytes(probe.same_until));
      out.set_survives(probe.survives);
      out.set_ooms(static_cast<int64_t>(probe.ooms));
      out.set_alloc_retries(static_cast<int64_t>(probe.alloc_retries));
      out.set_peak_reserved_bytes(probe.peak_reserved.signed_value());
      out.set_device_calls(static_cast<int64_t>(probe.device_calls));
    }
  }
}

absl::StatusOr<proto::DeviceReport> AskFit(const Study& study,
                                           const std::vector<std::string>& confs, size_t threads,
                                           ProgressSink* progress) {
  absl::StatusOr<proto::DeviceReport> report = AskCurrent(study);
  if (!report.ok()) return report;
  const std::vector<Lifetime> lifetimes = LifetimesOf(study.schedule());
  const PeakLive live = PeakLiveOf(lifetimes);
  const SweepContext context = {study,   study.settings(), StartPolicy::kFresh,
                                threads, nullptr,          progress};
  const uint64_t requests = study.schedule().requests().size();
  const uint64_t max_sizes = MaxSizes(requests);
  std::vector<ReplaySettings> meanings;
  std::vector<FitRow> rows = RowsFor(study.settings(), confs, &meanings);
  // Each row is computed twice, with addresses in either order.
  ParallelFor(2 * rows.size(), context.threads, [&](size_t i) {
    FitRow& row = rows[i / 2];
    if (!row.refused.empty()) return;
    ReplaySettings meaning = meanings[i / 2];
    if (i % 2 == 0) {
      row.found = FindSmallestCapacity(context, meaning, live.requested, max_sizes);
    } else {
      meaning.order = OtherOrder(meaning.order);
      row.other_order = FindSmallestCapacity(context, meaning, live.requested, max_sizes);
    }
  });
  if (absl::c_any_of(
          rows, [](const FitRow& row) { return row.found.is_cut || row.other_order.is_cut; })) {
    report->add_notes(StrCat("for each of the settings and each order of addresses, at most ",
                             FormatCount(static_cast<int64_t>(max_sizes), "size"),
                             " were tried, because each replays ",
                             FormatCount(static_cast<int64_t>(requests), "request"),
                             ": smaller sizes than those below may work too, and not all sizes "
                             "above them are proven to work"));
  }
  AddFits(rows, live, BestPacking(lifetimes), &*report);
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
    return InvalidArgument(question.key,
                           "=? requires --capacity, the memory available to the allocator");
  }
  ASSIGN_OR_RETURN(const ProfileChoice profile, ChooseProfile(smallest.program, request.torch));
  std::vector<std::string> confs = question.confs;
  if (confs.empty()) confs = UsualConfs(*profile.profile);
  std::vector<proto::LargestFit::Setting> tried(confs.size());
  const size_t threads = std::max<size_t>(1, std::thread::hardware_concurrency());
  ParallelFor(confs.size(), threads, [&](size_t i) {
    SettingsRequest one = request;
    one.conf = confs[i];
    tried[i] = TryAll(question, one);
  });
  proto::Report report = NewReport("fit");
  proto::LargestFit& out = *report.mutable_largest_fit();
  out.set_model(question.model);
  out.set_key(question.key);
  out.set_torch_release(std::string(profile.profile->release));
  out.set_capacity_bytes(request.capacity->signed_value());
  out.set_context_bytes(question.cuda_context.bytes);
  out.set_context_reason(question.cuda_context.reason);
  for (proto::LargestFit::Setting& setting : tried) *out.add_settings() = std::move(setting);
  return report;
}

proto::Report PredictionReport(std::string_view model, int64_t parameters,
                               const AssumedOutside& cuda_context, const ReplaySettings& settings,
                               const PhaseUsage& usage) {
  proto::Report report = NewReport("synth");
  proto::Prediction& out = *report.mutable_prediction();
  out.set_model(std::string(model));
  out.set_parameters(parameters);
  out.set_conf(CleanText(settings.config.conf));
  *out.mutable_torch() = DescribeChoice(settings.torch);
  if (settings.capacity.has_value()) out.set_capacity_bytes(settings.capacity->signed_value());
  out.set_peak_allocated_bytes(usage.highest().allocated.signed_value());
  out.set_peak_reserved_bytes(usage.peak_reserved().signed_value());
  out.set_context_bytes(cuda_context.bytes);
  out.set_context_reason(cuda_context.reason);
  out.set_peak_phase(CleanText(usage.highest().phase));
  for (const PhasePeak& phase : usage.phases()) {
    proto::Prediction::Phase& p = *out.add_phases();
    p.set_name(CleanText(phase.phase));
    p.set_peak_allocated_bytes(phase.allocated.signed_value());
    p.set_peak_reserved_bytes(phase.reserved.signed_value());
    for (const auto& [tag, bytes] : phase.by_tag) {
      (*p.mutable_bytes_by_tag())[CleanText(tag)] = bytes.signed_value();
    }
  }
  if (usage.oom().has_value()) {
    const PhaseOom& oom = *usage.oom();
    out.mutable_oom()->set_phase(CleanText(oom.phase));
    out.mutable_oom()->set_label(CleanText(oom.label));
    out.mutable_oom()->set_name(CleanText(oom.name));
    out.mutable_oom()->set_size_bytes(oom.size.signed_value());
    out.mutable_oom()->set_allocated_bytes(oom.allocated.signed_value());
    out.mutable_oom()->set_reserved_bytes(oom.reserved.signed_value());
  }
  return report;
}

}  // namespace memreplay
