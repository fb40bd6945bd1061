#include "sim/recording/exact_replay.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/device/recorded_device.h"
#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/recording/tie_evidence.h"
#include "sim/recording/why_not_exact.h"
#include "sim/run/replay.h"
#include "trace/value/check.h"

namespace memreplay {
namespace {

// Marks the requested sizes of the start's cached blocks with their number, so that they are
// recognised at the end. No granted request is as large.
constexpr uint64_t kTag = uint64_t{1} << 62;

class NoObserver final : public Observer {
 public:
  void OnEvent(const Event& /*event*/) override {}
};

// What the replays of one recording have in common.
struct Recording {
  const Schedule& schedule;
  const AllocatorConfig& config;
  const TorchProfile& profile;
  Bytes total_memory;

  ReplayResult Replay(const MemoryState& start, const RestoreHints& hints, Observer& observer,
                      const RunOptions& options = {}, TieGuide* guide = nullptr,
                      GpuLimits* card = nullptr) const {
    RecordedDevice device(schedule, total_memory);
    device.Hold(start);
    ReplayPlan plan{.schedule = &schedule, .profile = &profile, .config = &config};
    plan.start = {
        .policy = StartPolicy::kRecorded, .segments = &start, .is_held = true, .hints = &hints};
    plan.tie_guide = guide;
    absl::StatusOr<ReplayResult> result = memreplay::Replay(plan, device, observer, options);
    MEMREPLAY_CHECK(result.ok(),
                    "a start state that fits, without a memory fraction, cannot be refused");
    if (card != nullptr) *card = device.limits();
    return *std::move(result);
  }
};

// Returns the GPU's memory, if the script limited PyTorch to a share of it and Python noted that.
std::optional<Bytes> NotedMemory(const Schedule& schedule) {
  for (const MemoryNote& note : schedule.device_trace().notes) {
    const Bytes total(note.address.value());
    if (note.kind == NoteKind::kFraction && total > Bytes() && total <= kMaxDeviceMemory) {
      return total;
    }
  }
  return std::nullopt;
}

// Returns the device's memory, which PyTorch's files do not contain. The size of a reservation
// depends on it, and thereby whether a free block that can still grow is chosen over a larger one.
// Reservations do not overlap and drivers place them next to each other, so the smallest distance
// between two of them is their size.
Bytes TotalMemory(const Schedule& schedule, const AllocatorConfig& config) {
  const std::optional<Bytes>& known = schedule.trace().total_memory;
  if (known.has_value()) return *known;
  if (const std::optional<Bytes> noted = NotedMemory(schedule)) return *noted;
  if (!schedule.is_cold() || config.expandable_segments_reserve != ExpandableReserve()) {
    return SimulatedDevice::kUnlimitedTotal;
  }
  std::map<Address, Address> filled;  // where reservations begin, and how far they were ever mapped
  const EventView recorded = schedule.recorded();
  for (const uint32_t i : schedule.segment_events()) {
    if (recorded.kind(i) != EventKind::kSegmentMap) continue;
    const Event event = recorded[i];
    const Address end = event.address + event.size;
    const auto next = filled.upper_bound(event.address);
    if (next != filled.begin() && event.address <= std::prev(next)->second) {
      std::prev(next)->second = std::max(std::prev(next)->second, end);
    } else {
      filled.emplace(event.address, end);
    }
  }
  Bytes size = kUnlimited;
  Bytes most_filled;
  for (auto it = filled.begin(); it != filled.end(); ++it) {
    most_filled = std::max(most_filled, it->second - it->first);
    if (std::next(it) != filled.end()) size = std::min(size, std::next(it)->first - it->first);
  }
  // Otherwise there is only one, or one took the place of others that were released.
  return most_filled <= size && size < kUnlimited ? Bytes(size.value() / 9 * 8)
                                                  : SimulatedDevice::kUnlimitedTotal;
}

// Finds in which order equal blocks of the start are chosen. Returns false if the recorded choices
// contradict each other.
bool FindTies(const Recording& recording, const MemoryState& start, RestoreHints& hints) {
  TieEvidence evidence(recording.schedule);
  recording.Replay(start, {}, evidence, {}, &evidence);
  hints.tie_ranks = evidence.Ranks();
  return !evidence.contradictory();
}

// The last requested sizes of cached blocks of the start, and of ranges without pages. No file
// contains them, except for such blocks that are cached at the end. They change nothing that a
// replay does. Until they are found, each is marked with a number.
class StaleRequests {
 public:
  StaleRequests(MemoryState& start, RestoreHints& hints) {
    const auto mark = [this](Bytes* requested) {
      *requested = Bytes(kTag + stale_.size());
      stale_.push_back(requested);
    };
    for (const SegmentInfo& segment : start) {
      if (segment.is_expandable) {
        hints.unmapped_requests[(segment.address + segment.total_size).value()] = Bytes();
      }
    }
    for (auto& [end, requested] : hints.unmapped_requests) mark(&requested);
    for (SegmentInfo& segment : start) {
      for (BlockInfo& block : segment.blocks) {
        if (block.state == BlockState::kInactive) mark(&block.requested_size);
      }
    }
  }

  // Finds them after a replay with the marks; `simulated` are its segments at the end.
  void Find(const MemoryState& simulated, const MemoryState& recorded) {
    Forget();
    size_t s = 0;
    for (const SegmentInfo& segment : recorded) {
      while (s < simulated.size() && simulated[s].address < segment.address) ++s;
      if (s == simulated.size()) break;
      if (simulated[s].address != segment.address) continue;
      auto block = simulated[s].blocks.begin();
      for (const BlockInfo& info : segment.blocks) {
        while (block != simulated[s].blocks.end() && block->address < info.address) ++block;
        if (block == simulated[s].blocks.end()) break;
        if (block->address != info.address || info.state != BlockState::kInactive) continue;
        if (Bytes* const stale = Marked(*block); stale != nullptr) *stale = info.requested_size;
      }
    }
  }

  // Says that none was found.
  void Forget() {
    for (Bytes* requested : stale_) *requested = Bytes();
  }

  // Replaces the marks in the segments at the end of a replay by what was found.
  void Unmark(MemoryState& simulated) const {
    for (SegmentInfo& segment : simulated) {
      for (BlockInfo& block : segment.blocks) {
        if (const Bytes* const stale = Marked(block); stale != nullptr) {
          block.requested_size = *stale;
        }
      }
    }
  }

 private:
  // Returns null if the block has no mark, also if the file made one up.
  Bytes* Marked(const BlockInfo& block) const {
    if (block.state != BlockState::kInactive || block.requested_size < Bytes(kTag)) return nullptr;
    const uint64_t number = block.requested_size.value() - kTag;
    return number < stale_.size() ? stale_[number] : nullptr;
  }

  std::vector<Bytes*> stale_;
};

}  // namespace

ExactReplayResult ReplayAsRecorded(const Schedule& schedule, const AllocatorConfig& config,
                                   const TorchProfile& profile, const ExactReplayOptions& options) {
  ExactReplayResult result;
  const Recording recording{schedule, config, profile, TotalMemory(schedule, config)};
  RestoreHints& hints = result.hints;
  MemoryState& start = result.start.segments;
  if (options.start != nullptr) {
    static_cast<ExactStart&>(result) = *options.start;
  } else if (!schedule.is_cold()) {
    result.start = RebuildStartState(schedule, config, profile);
    if (profile.free_tie != FreeTie::kAddress) {
      result.ties_known = FindTies(recording, start, hints);
    }
    result.has_free_requests = schedule.final_state() == nullptr;
  }
  std::optional<StaleRequests> stale;
  if (!result.has_free_requests) stale.emplace(start, hints);
  if (stale.has_value() && !options.stop_at_divergence && !options.ignores_free_requests) {
    NoObserver nobody;
    stale->Find(recording.Replay(start, hints, nobody).segments, *schedule.final_state());
    stale.reset();
    result.has_free_requests = true;
  }

  Fidelity fidelity(schedule, options.stop_at_divergence);
  ObserverList observers = {&fidelity, options.observer};
  StopWhen stop([&] { return fidelity.first_divergence().has_value(); });
  ReplayResult replay =
      recording.Replay(start, hints, observers,
                       {.check_invariants = options.check_invariants,
                        .intervention = options.stop_at_divergence ? &stop : options.intervention},
                       nullptr, &result.card);
  if (stale.has_value()) {
    result.has_free_requests =
        !options.stop_at_divergence || !fidelity.first_divergence().has_value();
    if (result.has_free_requests) {
      stale->Find(replay.segments, *schedule.final_state());
    } else {
      stale->Forget();
    }
    stale->Unmark(replay.segments);
  }
  result.card.total = NotedMemory(schedule);
  result.run = std::move(replay.run);
  result.statistics = replay.statistics;
  result.segments = std::move(replay.segments);
  result.recorded_events = schedule.recorded().size();
  result.compared_events = fidelity.compared();
  result.matched_events = fidelity.matched();
  result.first_divergence = fidelity.first_divergence();
  result.exact_until_event = fidelity.exact_until_event();
  if (options.stop_at_divergence && result.first_divergence.has_value()) return result;
  result.exactness_reason = WhyNotExact(result, schedule, config, profile);
  if (schedule.final_state() != nullptr) {
    result.final_blocks = CompareFinalState(*schedule.final_state(), result.segments);
  }
  return result;
}

void RepeatReplay(const Schedule& schedule, const AllocatorConfig& config,
                  const TorchProfile& profile, const ExactStart& start, Observer& observer,
                  Intervention& intervention) {
  const Recording recording{schedule, config, profile, TotalMemory(schedule, config)};
  recording.Replay(start.start.segments, start.hints, observer, {.intervention = &intervention});
}

RecordingFollowed FollowedBy(const ExactReplayResult& replay) {
  return {!replay.first_divergence.has_value() && replay.final_blocks.exact(),
          replay.exact_until_event, replay.first_divergence};
}

RecordingFollowed FollowRecording(const Schedule& schedule, const AllocatorConfig& config,
                                  const TorchProfile& profile) {
  return FollowedBy(ReplayAsRecorded(schedule, config, profile, {.stop_at_divergence = true}));
}

}  // namespace memreplay
