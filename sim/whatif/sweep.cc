#include "sim/whatif/sweep.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sim/run/parallel.h"
#include "sim/settings/conf_lint.h"
#include "sim/settings/size_rules.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

WhatIfOptions OptionsOf(const SweepContext& context) {
  WhatIfOptions options = context.study.Options(context.start);
  options.costs = context.costs;
  return options;
}

ReplaySettings SettingsOf(const ReplaySettings& base, const SweepRow& row) {
  ReplaySettings settings = base;
  settings.config = row.config;
  settings.fraction = row.fraction;
  return settings;
}

// Returns the sizes that a schedule requests, each once.
absl::flat_hash_set<uint64_t> DistinctSizes(const Schedule& schedule) {
  absl::flat_hash_set<uint64_t> sizes;
  for (const StartAllocation& start : schedule.start_allocations()) {
    sizes.insert(start.requested_size.value());
  }
  for (const Event& request : schedule.requests()) {
    if (request.kind == EventKind::kAlloc && request.size > Bytes(0) && request.size < kTooLarge) {
      sizes.insert(request.size.value());
    }
  }
  return sizes;
}

// Returns whether two settings give the same replay. Roundings and the size of large segments
// affect a replay only through the sizes of blocks and of what is requested from the device, and
// for expandable segments also through the size of their pages. `needs_large_segment_size` is that
// of the run under `a`.
bool AreAlike(const ReplaySettings& a, const ReplaySettings& b, bool needs_large_segment_size,
              const absl::flat_hash_set<uint64_t>& sizes) {
  AllocatorConfig rest = a.config;
  rest.conf = b.config.conf;
  rest.roundup_power2_divisions = b.config.roundup_power2_divisions;
  if (!rest.expandable_segments) rest.large_segment_size = b.config.large_segment_size;
  // It is requested with a block that must not be split.
  if (rest.max_split_size == kUnlimited) {
    rest.max_non_split_rounding = b.config.max_non_split_rounding;
  }
  if (!(rest == b.config) || a.fraction != b.fraction) return false;
  return std::all_of(sizes.begin(), sizes.end(), [&](uint64_t size) {  // in any order
    const Bytes rounded = RoundSize(Bytes(size), a.config, *a.torch.profile);
    return rounded == RoundSize(Bytes(size), b.config, *b.torch.profile) &&
           (!needs_large_segment_size ||
            AllocationSize(rounded, a.config) == AllocationSize(rounded, b.config));
  });
}

}  // namespace

absl::StatusOr<ReplaySettings> SettingsFor(const ReplaySettings& settings,
                                           const Candidate& candidate) {
  ReplaySettings result = settings;
  result.config = AllocatorConfig();
  const absl::Status parsed =
      ParseAllocatorConf(candidate.conf, *settings.torch.profile, &result.config);
  if (!parsed.ok()) {
    return absl::Status(parsed.code(), StrCat(ToStd(parsed.message()),
                                              ConfHint(candidate.conf, *settings.torch.profile)));
  }
  if (candidate.fraction.has_value()) result.fraction = candidate.fraction;
  return result;
}

SweepRow ReplayRow(const SweepContext& context, const ReplaySettings& settings, bool keep) {
  SweepRow row;
  row.conf = settings.config.conf;
  row.config = settings.config;
  row.fraction = settings.fraction;
  const absl::StatusOr<WhatIfResult> result =
      keep ? context.study.Run(settings, context.start, context.costs)
           : ReplayWhatIf(context.study.schedule(), settings, nullptr, OptionsOf(context));
  if (context.progress != nullptr) context.progress->AddDone();
  if (!result.ok()) {
    row.refused = std::string(ToStd(result.status().message()));
    return row;
  }
  row.ooms = result->run.ooms;
  static_cast<WhatIfFigures&>(row) = *result;
  row.peak_reserved = result->peak.reserved();
  row.peak_allocated = result->peak.allocated();
  row.at_peak = result->moments.at_peak.usage;
  row.cause_event = result->moments.cause_event;
  row.alloc_retries = static_cast<uint64_t>(result->statistics.num_alloc_retries);
  return row;
}

std::vector<size_t> FirstAlike(const Schedule& schedule, absl::Span<const ReplaySettings> settings,
                               absl::Span<const SweepRow> known) {
  std::vector<size_t> first(settings.size());
  std::iota(first.begin(), first.end(), size_t{0});
  // Settings that change during the run are parsed over those before.
  const RequestView requests = schedule.requests();
  const bool fixed = std::none_of(requests.begin(), requests.end(), [](const Event& request) {
    return request.kind == EventKind::kSettings;
  });
  if (!fixed || settings.size() < 2) return first;
  const absl::flat_hash_set<uint64_t> sizes = DistinctSizes(schedule);
  for (size_t i = 1; i < settings.size(); ++i) {
    for (size_t k = 0; k < i && first[i] == i; ++k) {
      const bool needs_size = k >= known.size() || known[k].needs_large_segment_size;
      if (first[k] == k && AreAlike(settings[k], settings[i], needs_size, sizes)) first[i] = k;
    }
  }
  return first;
}

std::vector<SweepRow> Sweep(const SweepContext& context, absl::Span<const Candidate> candidates,
                            absl::Span<const SweepRow> known) {
  std::vector<SweepRow> rows(candidates.size());
  // The settings of `known`, then of the candidates that the release accepts, and where their rows
  // are.
  std::vector<ReplaySettings> settings;
  std::vector<SweepRow*> row_of(known.size(), nullptr);
  for (const SweepRow& row : known) settings.push_back(SettingsOf(context.settings, row));
  for (size_t i = 0; i < candidates.size(); ++i) {
    absl::StatusOr<ReplaySettings> parsed = SettingsFor(context.settings, candidates[i]);
    if (parsed.ok()) {
      row_of.push_back(&rows[i]);
      settings.push_back(*std::move(parsed));
    } else {
      rows[i].refused = std::string(ToStd(parsed.status().message()));
      rows[i].fraction = candidates[i].fraction;
    }
  }
  const std::vector<size_t> first = FirstAlike(context.study.schedule(), settings, known);
  std::vector<size_t> replayed;
  for (size_t i = known.size(); i < first.size(); ++i) {
    if (first[i] == i) replayed.push_back(i);
  }
  // Replays with max_split_size come first: blocks that must not be split leave most of them
  // cached, so these take longest.
  std::stable_partition(replayed.begin(), replayed.end(),
                        [&](size_t i) { return settings[i].config.max_split_size != kUnlimited; });
  ParallelFor(replayed.size(), context.threads,
              [&](size_t i) { *row_of[replayed[i]] = ReplayRow(context, settings[replayed[i]]); });
  for (size_t i = known.size(); i < first.size(); ++i) {
    if (first[i] == i) continue;
    *row_of[i] = first[i] < known.size() ? known[first[i]] : *row_of[first[i]];
    row_of[i]->config = settings[i].config;
  }
  for (size_t i = 0; i < candidates.size(); ++i) rows[i].conf = candidates[i].conf;
  return rows;
}

std::vector<std::string> UsualConfs(const TorchProfile& profile) {
  std::vector<std::string> confs = {""};
  if (profile.expandable_segments) confs.push_back("expandable_segments:True");
  return confs;
}

bool RanksBefore(const SweepRow& a, const SweepRow& b) {
  const auto key = [](const SweepRow& row) {
    return std::tuple(!row.refused.empty(), row.ooms, row.peak_reserved, row.alloc_retries,
                      row.calls.total(), row.conf.size());
  };
  return std::tuple_cat(key(a), std::tie(a.conf)) < std::tuple_cat(key(b), std::tie(b.conf));
}

void FindOtherOrder(const SweepContext& context, absl::Span<SweepRow* const> rows) {
  ParallelFor(rows.size(), context.threads, [&](size_t i) {
    SweepRow& row = *rows[i];
    if (!row.refused.empty()) return;
    // The order concerns segments alone, not reserved ranges.
    const bool is_same = row.config.expandable_segments && row.calls.segment_allocs == 0 &&
                         context.study.schedule().is_cold();
    const absl::StatusOr<Bytes> other =
        is_same ? row.peak_reserved
                : context.study.PeakInOtherOrder(SettingsOf(context.settings, row), context.start);
    if (context.progress != nullptr) context.progress->AddDone();
    if (other.ok()) row.other_order_peak_reserved = *other;
  });
}

PeakCause WhyReserved(const SweepContext& context, const SweepRow& row) {
  if (row.cause_event == UsageObserver::kAtStart) return PeakCause();
  PeakCauseObserver cause(row.config, row.cause_event);
  const ReplaySettings settings = SettingsOf(context.settings, row);
  StopWhen stop([&] { return cause.cause().known; });
  WhatIfOptions options = OptionsOf(context);
  options.run.intervention = &stop;
  const auto result = ReplayWhatIf(context.study.schedule(), settings, &cause, options);
  return result.ok() ? cause.cause() : PeakCause();
}

Obstacle PeakCause::main() const {
  Obstacle most = Obstacle::kOtherPool;
  for (size_t i = 0; i < static_cast<size_t>(Obstacle::kFits); ++i) {
    if (cached[i].bytes > (*this)[most].bytes) most = static_cast<Obstacle>(i);
  }
  return most;
}

void PeakCauseObserver::OnEvent(const Event& event) {
  const uint64_t index = events_++;
  if (cause_.known || index < at_event_) return;
  if (event.kind != EventKind::kAlloc && event.kind != EventKind::kOom) return;
  cause_.known = true;
  cause_.requested = event.size;
  cause_.stream = event.stream;
  cause_.stack = event.text_or_stack;
  cause_.id = event.id;
  const bool is_large = event.size > kSmallSize;
  const Bytes needed = event.block_size == Bytes(0) ? event.size : event.block_size;
  allocator_->VisitFreeBlocks([&](const FreeBlock& block) {
    Obstacle obstacle = Obstacle::kTooSmall;
    if (block.pool != event.pool || block.is_large != is_large) {
      obstacle = Obstacle::kOtherPool;
    } else if (block.stream != event.stream) {
      obstacle = Obstacle::kOtherStream;
    } else if (block.size >= needed) {
      obstacle = needed < config_.max_split_size && block.size >= config_.max_split_size
                     ? Obstacle::kOversize
                     : Obstacle::kFits;
    } else if (block.is_split) {
      obstacle = Obstacle::kSplit;
    }
    CachedBytes& sum = cause_.cached[static_cast<size_t>(obstacle)];
    sum.bytes += block.size;
    if (block.size > sum.largest) {
      sum.largest = block.size;
      sum.largest_address = block.address;
    }
    ++sum.blocks;
  });
}

}  // namespace memreplay
