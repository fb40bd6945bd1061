#include "sim/whatif/sweep.h"

#include <tuple>
#include <utility>

#include "sim/run/parallel.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

WhatIfOptions OptionsOf(const SweepContext& context) {
  WhatIfOptions options;
  options.start = context.start;
  options.recorded_start = context.recorded_start;
  options.costs = context.costs;
  return options;
}

ReplaySettings SettingsOf(const ReplaySettings& base, const SweepRow& row) {
  ReplaySettings settings = base;
  settings.config = row.config;
  settings.fraction = row.fraction;
  return settings;
}

}  // namespace

absl::StatusOr<ReplaySettings> SettingsFor(const ReplaySettings& settings,
                                           const Candidate& candidate) {
  ReplaySettings result = settings;
  result.config = AllocatorConfig();
  const absl::Status parsed =
      ParseAllocatorConf(candidate.conf, *settings.torch.profile, &result.config);
  if (!parsed.ok()) return parsed;
  if (candidate.fraction.has_value()) result.fraction = candidate.fraction;
  return result;
}

SweepRow ReplayRow(const SweepContext& context, const ReplaySettings& settings) {
  SweepRow row;
  row.conf = settings.config.conf;
  row.config = settings.config;
  row.fraction = settings.fraction;
  const absl::StatusOr<WhatIfResult> result =
      ReplayWhatIf(context.schedule, settings, nullptr, OptionsOf(context));
  if (!result.ok()) {
    row.refused = std::string(ToStd(result.status().message()));
    return row;
  }
  row.ooms = result->run.ooms;
  row.first_oom = result->first_oom;
  row.peak_reserved = result->peak.reserved();
  row.peak_allocated = result->peak.allocated();
  row.peak_active = result->peak.active();
  row.at_peak = result->at_peak;
  row.peak_event = result->peak_event[static_cast<size_t>(UsageKind::kReserved)];
  row.alloc_retries = static_cast<uint64_t>(result->statistics.num_alloc_retries);
  row.failures = result->run.failures.size();
  row.calls = result->calls;
  row.call_nanoseconds = result->call_nanoseconds;
  row.start = result->start;
  row.start_note = result->start_note;
  return row;
}

std::vector<SweepRow> Sweep(const SweepContext& context, absl::Span<const Candidate> candidates) {
  std::vector<SweepRow> rows(candidates.size());
  ParallelFor(candidates.size(), context.threads, [&](size_t i) {
    const absl::StatusOr<ReplaySettings> settings = SettingsFor(context.settings, candidates[i]);
    if (settings.ok()) {
      rows[i] = ReplayRow(context, *settings);
    } else {
      rows[i].refused = std::string(ToStd(settings.status().message()));
      rows[i].fraction = candidates[i].fraction;
    }
    rows[i].conf = candidates[i].conf;
  });
  return rows;
}

bool RanksBefore(const SweepRow& a, const SweepRow& b) {
  const auto key = [](const SweepRow& row) {
    return std::tuple(!row.refused.empty(), row.ooms, row.peak_reserved, row.alloc_retries,
                      row.calls.total(), row.conf.size());
  };
  return std::tuple_cat(key(a), std::tie(a.conf)) < std::tuple_cat(key(b), std::tie(b.conf));
}

std::optional<Bytes> CapacityAtOom(const Schedule& schedule, const MemoryState& start) {
  Bytes reserved = UsageOf(start).reserved();
  for (const Event& event : schedule.recorded()) {
    switch (event.kind) {
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentMap: reserved += event.size; break;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap: reserved -= event.size; break;
      case EventKind::kOom: return reserved + Bytes(event.address.value());
      default: break;
    }
  }
  return std::nullopt;
}

PeakCause WhyReserved(const SweepContext& context, const SweepRow& row) {
  const uint64_t at = row.peak_event == UsageObserver::kAtStart ? 0 : row.peak_event;
  PeakCauseObserver cause(row.config, at);
  const ReplaySettings settings = SettingsOf(context.settings, row);
  const auto result = ReplayWhatIf(context.schedule, settings, &cause, OptionsOf(context));
  return result.ok() ? cause.cause() : PeakCause();
}

}  // namespace memreplay
