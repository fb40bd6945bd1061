// Replays one schedule under many settings, on several threads, and searches for settings that are
// worth trying on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/device/simulated_device.h"
#include "sim/model/allocator.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "sim/study/study.h"
#include "sim/study/what_if.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// Why a cached block did not serve a request. The first reason that holds counts.
enum class Obstacle : uint8_t {
  kOtherPool,    // of another pool, or of the other kind (small, large)
  kOtherStream,  // of another stream; streams never share blocks
  kOversize,     // max_split_size_mb keeps it from smaller requests
  kSplit,        // too small, and its segment cannot be released because live blocks share it
  kTooSmall,     // too small, and a whole segment
  kFits,         // large enough, but cached only after the request was served
  kCount
};
inline constexpr size_t kObstacles = static_cast<size_t>(Obstacle::kCount);

// Cached blocks that did not serve a request for one reason.
struct CachedBytes {
  Bytes bytes;
  uint64_t blocks = 0;
  Bytes largest;
  Address largest_address;  // on the simulated device
};

// Why reserved memory had to grow to its peak: which cached memory could not serve the request that
// made it grow, and why.
struct PeakCause {
  bool known = false;
  Bytes requested;  // of the request
  uint32_t stream = 0;
  uint32_t stack = 0;               // of the request
  AllocationId id = kNoAllocation;  // the requested allocation, if it was granted
  std::array<CachedBytes, kObstacles> cached;
  const CachedBytes& operator[](Obstacle obstacle) const {
    return cached[static_cast<size_t>(obstacle)];
  }
  // Returns the obstacle of most cached bytes, apart from kFits.
  Obstacle main() const;
};

// An observer that examines the cached blocks of the allocator after the first alloc or oom at or
// after the event `at_event`. O(1) per event, O(free blocks) once.
class PeakCauseObserver final : public Observer {
 public:
  // `config` is the current one and must outlive this.
  PeakCauseObserver(const AllocatorConfig& config, uint64_t at_event)
      : config_(config), at_event_(at_event) {}
  void OnStart(const MemoryState& /*state*/, const Allocator& allocator) override {
    allocator_ = &allocator;
  }
  void OnEvent(const Event& event) override;
  const PeakCause& cause() const { return cause_; }

 private:
  const Allocator* allocator_ = nullptr;
  const AllocatorConfig& config_;
  const uint64_t at_event_;
  uint64_t events_ = 0;
  PeakCause cause_;
};

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
struct SweepRow : WhatIfFigures {
  std::string conf;
  std::optional<double> fraction;
  std::string refused;  // why this release rejects the settings; the rest is then empty
  AllocatorConfig config;
  uint64_t ooms = 0;
  Bytes peak_reserved;
  Bytes other_order_peak_reserved;  // with addresses in the other order; 0 if not searched for
  Bytes peak_allocated;
  Usage at_peak;             // of reserved memory
  uint64_t cause_event = 0;  // Moments::cause_event
  uint64_t alloc_retries = 0;
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

// Maximum number of settings that a search replays on any schedule.
inline constexpr size_t kMaxSearch = 120;

// Returns how many settings a search replays at most: fewer on a schedule of more than a million
// requests.
size_t MaxSearch(const Schedule& schedule);

// Returns the rows of every setting tried, best first (RanksBefore()). The current settings
// (context.settings) are one of them, and no other means the same. Tries single keys first:
// expandable_segments; max_split_size_mb at sizes that the schedule requests;
// roundup_power2_divisions as a number and as lists; large_segment_size_mb;
// garbage_collection_threshold with a memory fraction if the device has a capacity. Then tries
// pairs of the best of each, and max_split_size_mb near its best. Uses only keys that the release
// knows, and never max_split_size_mb with expandable_segments, which together may grow without
// bound.
std::vector<SweepRow> SearchConf(const SweepContext& context);

}  // namespace memreplay
