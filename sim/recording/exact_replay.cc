#include "sim/recording/exact_replay.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sim/device/simulated_device.h"
#include "sim/model/free_set.h"
#include "sim/recording/why_not_exact.h"
#include "sim/run/replay.h"
#include "trace/value/check.h"

namespace memreplay {
namespace {

// Marks the requested sizes of the start's cached blocks with their number, so that they are
// recognised at the end. No granted request is as large.
constexpr uint64_t kTag = uint64_t{1} << 62;

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

// Finds which of the blocks that existed at the beginning were older. From PyTorch 2.12 on this
// decides between cached blocks of one size. No file contains it, but recorded addresses show it,
// choice by choice: it follows the recorded addresses where they are among equal blocks, and notes
// what each choice shows. It must be the allocator's tie guide and an observer of the same run.
class TieEvidence final : public TieGuide, public Observer {
 public:
  // `schedule` must outlive this.
  explicit TieEvidence(const Schedule& schedule) : schedule_(schedule) {}

  void OnRequest(size_t request) override {
    CompareReleases();
    const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
    begin_ = begins[request];
    end_ = request + 1 < begins.size() ? begins[request + 1] : schedule_.recorded().size();
    wanted_ = Address();
    for (size_t i = begin_; i < end_; ++i) {
      const Event& event = schedule_.recorded()[i];
      if (event.kind == EventKind::kAlloc) wanted_ = event.address;
    }
  }

  void OnEvent(const Event& /*event*/) override {}
  void OnRestore(uint64_t count, uint64_t stride) override {
    restored_ = count;
    stride_ = stride;
  }
  Block* Choose(Block* first, const FreeSet& set) override {
    if (wanted_.is_null() || gave_up()) return first;
    // A block before unmapped pages counts as larger, see GetFreeBlock().
    const auto has_room = [](const Block* block) {
      return block->next != nullptr && !block->next->mapped;
    };
    Block* chosen = nullptr;
    for (Block* block = first; block != nullptr && block->size == first->size;
         block = set.Next(block)) {
      if (block->address == wanted_) chosen = block;
      ++looked_at_;
    }
    if (chosen == nullptr) return first;
    if (has_room(chosen)) return chosen;
    for (Block* block = first; block != nullptr && block->size == first->size;
         block = set.Next(block)) {
      if (block != chosen && !has_room(block)) Before(TieOf(*chosen), TieOf(*block));
    }
    return chosen;
  }

  void OnRelease(const Block& block) override {
    released_.push_back({block.address, TieOf(block)});
  }

  // Returns the rank of each restored tie (1, 2 ...) with which every choice and release seen
  // agrees; where nothing is known, it is the order of addresses. Empty if that order is already
  // right. O(choices * log).
  std::vector<uint64_t> Ranks() {
    const uint64_t count = restored_;
    CompareReleases();
    contradictory_ = gave_up();
    std::vector<std::vector<uint64_t>> younger(count + 1);
    std::vector<uint64_t> older_left(count + 1, 0);
    bool in_order = true;
    for (const auto& [a, b] : before_) {     // in any order
      if (a > count || b > count) continue;  // it was made during the replay
      younger[a].push_back(b);
      ++older_left[b];
      in_order &= a < b;
    }
    if (in_order) return {};
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> next;
    for (uint64_t tie = 1; tie <= count; ++tie) {
      if (older_left[tie] == 0) next.push(tie);
    }
    std::vector<uint64_t> ranks(count + 1, 0);
    uint64_t rank = 0;
    while (!next.empty()) {
      const uint64_t tie = next.top();
      next.pop();
      ranks[tie] = ++rank;
      for (uint64_t other : younger[tie]) {
        if (--older_left[other] == 0) next.push(other);
      }
    }
    for (uint64_t tie = 1; tie <= count; ++tie) {
      if (ranks[tie] != 0) continue;
      contradictory_ = true;
      ranks[tie] = ++rank;
    }
    return ranks;
  }

  // Returns whether choices contradict each other, or are too many to compare all; valid after
  // Ranks().
  bool contradictory() const { return contradictory_; }

 private:
  struct Released {
    Address address;
    uint64_t tie;
  };
  uint64_t TieOf(const Block& block) const { return block.order / stride_; }
  // Returns whether there was too much to compare. Every choice is compared with every equal block,
  // so n choices of n equal blocks would be n * n.
  bool gave_up() const { return looked_at_ > kMaxLookedAt || before_.size() > kMaxPairs; }
  static constexpr uint64_t kMaxLookedAt = uint64_t{1} << 24;
  static constexpr size_t kMaxPairs = size_t{1} << 20;
  void Before(uint64_t older, uint64_t younger) {
    if (older != younger) before_.emplace(older, younger);
  }

  // Equal segments are released in the order in which they would be chosen.
  void CompareReleases() {
    if (released_.size() < 2) return released_.clear();
    absl::flat_hash_map<uint64_t, uint64_t> ties;  // by address
    for (const Released& released : released_) {
      ties.emplace(released.address.value(), released.tie);
    }
    const auto tie_at = [&ties](Address address) -> uint64_t {
      const auto it = ties.find(address.value());
      return it != ties.end() ? it->second : 0;
    };
    std::optional<Event> last;
    uint64_t last_tie = 0;
    for (size_t i = begin_; i < end_; ++i) {
      const Event& event = schedule_.recorded()[i];
      if (event.kind != EventKind::kSegmentFree) continue;
      const uint64_t tie = tie_at(event.address);
      if (last.has_value() && last->size == event.size && last->stream == event.stream &&
          last->pool == event.pool && last_tie != 0 && tie != 0) {
        Before(last_tie, tie);
      }
      last = event;
      last_tie = tie;
    }
    released_.clear();
  }

  const Schedule& schedule_;
  Address wanted_;  // recorded address of the current malloc
  uint64_t restored_ = 0;
  uint64_t stride_ = 1;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<Released> released_;  // by the current request
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> before_;
  uint64_t looked_at_ = 0;  // number of blocks
  bool contradictory_ = false;
};

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
    ObserverList nobody;
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
