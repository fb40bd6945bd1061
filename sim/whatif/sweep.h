// Replays one schedule under many settings, on several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/device/simulated_device.h"
#include "sim/model/device.h"
#include "sim/observe/peak_cause.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// Settings to try.
struct Candidate {
  std::string conf;                // replaces the whole PYTORCH_CUDA_ALLOC_CONF
  std::optional<double> fraction;  // set_per_process_memory_fraction(), if it needs one
};

// What all replays of a sweep share.
struct SweepContext {
  const Study& study;
  const ReplaySettings& settings;  // release, capacity, fraction; recorded settings
  StartPolicy start = StartPolicy::kRecorded;
  size_t threads = 1;
  const CallCosts* costs = nullptr;  // of the driver's calls, if known
  ProgressSink* progress = nullptr;  // informed of each replay
};

// Settings, and the result of a run under them.
struct SweepRow {
  std::string conf;
  std::optional<double> fraction;
  std::string refused;  // why this release rejects the settings; the rest is then empty
  AllocatorConfig config;
  uint64_t ooms = 0;
  std::optional<uint64_t> first_oom;  // request
  Bytes peak_reserved;
  Bytes other_order_peak_reserved;  // with addresses in the other order; 0 if not searched for
  Bytes peak_allocated;
  Bytes peak_active;
  Usage at_peak;  // of reserved memory
  uint64_t peak_event = 0;
  uint64_t cause_event = 0;  // Moments::cause_event
  uint64_t alloc_retries = 0;
  std::optional<Bytes> same_until;  // WhatIfResult::same_until
  uint64_t failures = 0;            // requests that end in an exception
  DeviceCalls calls;
  double call_nanoseconds = 0;           // time of these calls; 0 without costs
  bool needs_large_segment_size = true;  // WhatIfResult::needs_large_segment_size
  StartPolicy start = StartPolicy::kRecorded;
  std::string start_note;
  bool survives() const { return refused.empty() && ooms == 0; }
};

// Returns for each of `settings` the first of them, often itself, under which every replay of the
// schedule is the same: they differ at most in roundings, or in the size of large segments, that do
// not affect any requested size, or in a size of large segments that the run did not need. `known`
// are the rows of the first settings. O(settings^2) comparisons of settings, and of sizes if their
// divisions differ.
std::vector<size_t> FirstAlike(const Schedule& schedule, absl::Span<const ReplaySettings> settings,
                               absl::Span<const SweepRow> known = {});

// Returns a row per candidate, in their order. The same input gives the same rows, however many
// threads there are. Of candidates that are alike (FirstAlike) one is replayed, or none if `known`,
// which are rows of this context that were not rejected, contains such a row.
std::vector<SweepRow> Sweep(const SweepContext& context, absl::Span<const Candidate> candidates,
                            absl::Span<const SweepRow> known = {});

// Returns the row of settings that are already parsed, because those of a recording need not be a
// string. With `keep` the study keeps the run for callers that request it again.
SweepRow ReplayRow(const SweepContext& context, const ReplaySettings& settings, bool keep = true);

// Returns what to try by default: the release's own settings, and expandable segments if it has
// them.
std::vector<std::string> UsualConfs(const TorchProfile& profile);

// Returns whether `a` is better: the release accepts it, it survives (fewer out of memory), then
// less peak reserved, fewer retries, fewer driver calls, shorter settings, and last by their text.
bool RanksBefore(const SweepRow& a, const SweepRow& b);

// Sets other_order_peak_reserved of these rows, except for those that a release rejects.
void FindOtherOrder(const SweepContext& context, absl::Span<SweepRow* const> rows);

// Repeats the replay and observes why its reserved memory grew although memory was cached.
PeakCause WhyReserved(const SweepContext& context, const SweepRow& row);

// Returns `settings` of the context with those of the candidate. Error: the release rejects them.
absl::StatusOr<ReplaySettings> SettingsFor(const ReplaySettings& settings,
                                           const Candidate& candidate);

}  // namespace memreplay
