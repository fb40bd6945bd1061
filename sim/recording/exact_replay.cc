#include "sim/recording/exact_replay.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/device/recorded_device.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/recording/tie_evidence.h"
#include "sim/recording/why_not_exact.h"

namespace memreplay {
namespace {

// Marks the requested sizes of the start's cached blocks with their number, so
// that they are recognised at the end. No request is as large.
constexpr uint64_t kTag = uint64_t{1} << 62;

class NoObserver final : public Observer {
 public:
  void OnEvent(const Event& /*event*/) override {}
};

CachingAllocatorOptions AllocatorOptions(const Schedule& schedule) {
  CachingAllocatorOptions options;
  options.stream_order = StreamOrder::kAscending;
  options.streams = schedule.trace().streams;
  options.pools = schedule.trace().pools;
  options.allocation_count = schedule.allocation_count();
  return options;
}

// Ends a run that has left its recording.
class StopAtDivergence final : public Intervention {
 public:
  explicit StopAtDivergence(const Fidelity& fidelity) : fidelity_(fidelity) {}
  Next BeforeRequest(size_t /*request*/, Allocator& /*allocator*/,
                     Observer& /*observer*/) override {
    return fidelity_.first_divergence().has_value() ? Next::kStop : Next::kApply;
  }

 private:
  const Fidelity& fidelity_;
};

// Finds out in which order equal blocks of the start are chosen. False if the
// recorded choices contradict each other.
bool FindTies(const Schedule& schedule, const AllocatorConfig& config, const TorchProfile& profile,
              Bytes total_memory, const MemoryState& start, RestoreHints& hints) {
  TieEvidence evidence(schedule);
  RecordedDevice device(schedule, total_memory);
  device.Hold(start);
  CachingAllocatorOptions options = AllocatorOptions(schedule);
  options.tie_guide = &evidence;
  CachingAllocator allocator(profile, config, device, std::move(options));
  allocator.Restore(start);
  const uint64_t count = allocator.tie_count();
  NoObserver nobody;
  Run(schedule, allocator, nobody, {.listeners = {&device, &evidence}});
  hints.tie_ranks = evidence.Ranks(count);
  return !evidence.contradictory();
}

// What cached blocks of the start, and ranges without pages, were last asked
// for is in no file, except where such a block is cached at the end: replays
// once to find those.
void FindStaleRequests(const Schedule& schedule, const AllocatorConfig& config,
                       const TorchProfile& profile, Bytes total_memory, MemoryState& start,
                       RestoreHints& hints) {
  std::vector<Bytes*> stale;
  const auto tag = [&stale](Bytes* requested) {
    *requested = Bytes(kTag + stale.size());
    stale.push_back(requested);
  };
  for (const SegmentInfo& segment : start) {
    if (segment.is_expandable) {
      hints.unmapped_requests[(segment.address + segment.total_size).value()] = Bytes();
    }
  }
  for (auto& [end, requested] : hints.unmapped_requests) tag(&requested);
  for (SegmentInfo& segment : start) {
    for (BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) tag(&block.requested_size);
    }
  }
  RecordedDevice device(schedule, total_memory);
  CachingAllocator allocator(profile, config, device, AllocatorOptions(schedule));
  device.Hold(start);
  allocator.Restore(start, hints);
  NoObserver nobody;
  Run(schedule, allocator, nobody, {.listeners = {&device}});
  for (Bytes* requested : stale) *requested = Bytes();

  const MemoryState simulated = allocator.Segments();
  const MemoryState& recorded = *schedule.final_state();
  size_t s = 0;
  for (const SegmentInfo& segment : recorded) {
    while (s < simulated.size() && simulated[s].address < segment.address) ++s;
    if (s == simulated.size()) break;
    if (simulated[s].address != segment.address) continue;
    auto block = simulated[s].blocks.begin();
    for (const BlockInfo& info : segment.blocks) {
      while (block != simulated[s].blocks.end() && block->address < info.address) ++block;
      if (block == simulated[s].blocks.end()) break;
      if (block->address != info.address || info.state != BlockState::kInactive ||
          block->state != BlockState::kInactive || block->requested_size < Bytes(kTag)) {
        continue;
      }
      *stale[block->requested_size.value() - kTag] = info.requested_size;
    }
  }
}

}  // namespace

ExactReplayResult ReplayAsRecorded(const Schedule& schedule, const AllocatorConfig& config,
                                   const TorchProfile& profile, const ExactReplayOptions& options) {
  ExactReplayResult result;
  const Bytes total_memory =
      schedule.trace().total_memory.value_or(SimulatedDevice::kUnlimitedTotal);
  RestoreHints hints;
  if (!schedule.is_cold()) {
    result.start = RebuildStartState(schedule, config, profile);
    if (profile.free_tie != FreeTie::kAddress) {
      result.ties_known =
          FindTies(schedule, config, profile, total_memory, result.start.segments, hints);
    }
    if (schedule.final_state() != nullptr) {
      FindStaleRequests(schedule, config, profile, total_memory, result.start.segments, hints);
    }
  }

  RecordedDevice device(schedule, total_memory);
  device.Hold(result.start.segments);
  CachingAllocator allocator(profile, config, device, AllocatorOptions(schedule));
  if (!result.start.segments.empty()) allocator.Restore(result.start.segments, hints);
  const auto active = static_cast<uint64_t>(allocator.statistics().active_bytes.all.current);
  Fidelity fidelity(schedule, Bytes(active));
  ObserverList observers = {&fidelity};
  if (options.observe) {
    Observer* extra = options.observe(result.start.segments, allocator);
    if (extra != nullptr) observers.Add(extra);
  }
  StopAtDivergence stop(fidelity);
  result.run = Run(schedule, allocator, observers,
                   {.check_invariants = options.check_invariants,
                    .listeners = {&device, &fidelity},
                    .intervention = options.stop_at_divergence ? &stop : options.intervention});
  fidelity.Finish();

  result.recorded_events = schedule.recorded().size();
  result.compared_events = fidelity.compared();
  result.matched_events = fidelity.matched();
  result.first_divergence = fidelity.first_divergence();
  result.exact_until_event = fidelity.exact_until_event();
  result.exactness_reason = WhyNotExact(result, schedule, config, profile);
  result.statistics = allocator.statistics();
  result.segments = allocator.Segments();
  if (schedule.final_state() != nullptr) {
    result.final_blocks = CompareFinalState(*schedule.final_state(), result.segments);
  }
  return result;
}

}  // namespace memreplay
