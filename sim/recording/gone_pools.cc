// Private pools that were gone at the end of a recording (hypotheses.h).

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/recording/hypotheses.h"
#include "sim/settings/size_rules.h"
#include "trace/schedule/recorded_pools.h"

namespace memreplay {
namespace {

// Limits of the search for one device's pools.
constexpr size_t kMaxReplays = 400;
constexpr size_t kMaxEvents = 20'000'000;
// A guess is replayed up to where it diverges. To prepare all events for that costs as much as to
// replay one in so many.
constexpr size_t kPreparedPerReplayed = 8;
constexpr uint16_t kMaxPools = 8;  // of the former ones at a time

bool IsRelease(EventKind kind) {
  return kind == EventKind::kSegmentFree || kind == EventKind::kSegmentUnmap;
}

// Returns whether a pool whose cache is emptied may release the segment of `b` right after that of
// `a`: the small ones first, and each kind by stream, size and address.
bool MayFollow(const Event& a, const Event& b) {
  const auto key = [](const Event& e) {
    return std::tuple(e.size > kSmallBuffer, e.stream, e.size, e.address);
  };
  return a.kind == EventKind::kSegmentFree && b.kind == a.kind && key(a) < key(b);
}

// The pools of the released segments, by the event that released each. Segments of the default pool
// are absent.
using Guess = std::map<uint32_t, uint16_t>;

struct Tried {
  Guess guess;
  RecordingFollowed followed;
};

class PoolSearch {
 public:
  explicit PoolSearch(const Unexplained& device)
      : device_(device), first_pool_(static_cast<uint16_t>(device.trace->pools.size())) {}

  // Extends the best of all guesses first. Returns nullopt if none is exact.
  std::optional<Guess> Run() {
    std::vector<Tried> open = {{{}, device_.followed}};
    std::set<Guess> seen = {{}};
    while (!open.empty()) {
      const auto best = std::max_element(
          open.begin(), open.end(), [](const Tried& a, const Tried& b) { return IsFurther(b, a); });
      const Tried base = std::move(*best);
      open.erase(best);
      for (Tried& next : Further(base)) {
        if (next.followed.exact) return next.guess;
        if (seen.insert(next.guess).second) open.push_back(std::move(next));
      }
      if (is_spent()) return std::nullopt;
    }
    return std::nullopt;
  }

  // Returns the pools of all events that follow from a guess.
  InferredPools PoolsOf(const Guess& guess) const {
    InferredPools inferred = {device_.trace->pools, std::vector<uint16_t>(events().size()), {}};
    for (const auto& [event, pool] : guess) {
      while (inferred.pools.size() <= pool) {
        const uint64_t number = inferred.pools.size() - first_pool_ + 1;
        inferred.pools.push_back(PoolId{number, number});
      }
      inferred.of_event[event] = pool;
    }
    inferred.of_event =
        PoolsBySegments(device_trace().final_state, inferred.pools,
                        EventView(device_trace().events, nullptr, inferred.of_event.data()));
    return inferred;
  }

 private:
  const DeviceTrace& device_trace() const { return device_.trace->devices[device_.device]; }
  absl::Span<const Event> events() const { return device_trace().events.kept(); }

  bool is_spent() const { return replays_ > kMaxReplays || replayed_events_ > kMaxEvents; }

  Tried Try(Guess guess) {
    const Schedule schedule = Schedule::Build(device_.trace, device_.device, PoolsOf(guess));
    ++replays_;
    const RecordingFollowed followed = FollowRecording(schedule, device_.config, device_.profile);
    const size_t all = events().size();
    replayed_events_ += std::min<size_t>(followed.until_event + all / kPreparedPerReplayed, all);
    return {std::move(guess), followed};
  }

  static bool IsFurther(const Tried& a, const Tried& b) {
    return a.followed.until_event > b.followed.until_event;
  }

  // Returns the guesses that get further. Where a replay diverges from the recording, either a
  // block that fitted was not used, or one was used that another pool's request may have: one of
  // the two segments belongs to another pool.
  std::vector<Tried> Further(const Tried& base) {
    std::vector<Tried> found;
    if (!base.followed.divergence.has_value()) return found;
    const auto next_pool = std::max(first_pool_, static_cast<uint16_t>(1 + Largest(base.guess)));
    const auto last_pool =
        static_cast<uint16_t>(std::min<int>(next_pool, first_pool_ + kMaxPools - 1));
    for (uint16_t pool = 1; pool <= last_pool; ++pool) {
      // The request was in another pool.
      if (std::optional<Tried> tried = Move(base, base.followed.divergence->recorded, pool)) {
        if (tried->followed.exact || IsFurther(*tried, base)) found.push_back(*std::move(tried));
      }
      // The request was not, but the unused block was. There may be several such blocks.
      Tried left = base;
      while (left.followed.divergence.has_value() &&
             left.followed.until_event == base.followed.until_event && !is_spent()) {
        std::optional<Tried> tried = Move(left, left.followed.divergence->simulated, pool);
        if (!tried.has_value()) break;
        left = *std::move(tried);
      }
      if (left.followed.exact || IsFurther(left, base)) found.push_back(std::move(left));
    }
    return found;
  }

  static uint16_t Largest(const Guess& guess) {
    uint16_t largest = 0;
    for (const auto& [event, pool] : guess) largest = std::max(largest, pool);
    return largest;
  }

  // Returns the guess in which the segment of an event belongs to `pool`, or nullopt if it already
  // does or exists at the end.
  std::optional<Tried> Move(const Tried& base, const std::optional<Event>& event, uint16_t pool) {
    if (!event.has_value()) return std::nullopt;
    const std::optional<uint32_t> release =
        ReleaseOf(event->address, base.followed.divergence->index);
    if (!release.has_value()) return std::nullopt;
    if (const auto it = base.guess.find(*release); it != base.guess.end() && it->second == pool) {
      return std::nullopt;
    }
    // What is released one after the other is likely of one pool.
    uint32_t first = *release, last = *release;
    while (first > 0 && MayFollow(events()[first - 1], events()[first])) --first;
    while (last + 1 < events().size() && MayFollow(events()[last], events()[last + 1])) ++last;
    Guess together = base.guess;
    for (uint32_t i = first; i <= last; ++i) together[i] = pool;
    if (first < last) {
      Tried tried = Try(std::move(together));
      if (tried.followed.exact || IsFurther(tried, base)) return tried;
    }
    Guess guess = base.guess;
    guess[*release] = pool;
    return Try(std::move(guess));
  }

  // Returns the event that releases the segment in which `address` lies just before event `from`.
  std::optional<uint32_t> ReleaseOf(Address address, uint64_t from) const {
    for (size_t i = from; i < events().size(); ++i) {
      const Event& event = events()[i];
      if (IsRelease(event.kind) && event.address <= address &&
          address < event.address + event.size) {
        return static_cast<uint32_t>(i);
      }
    }
    return std::nullopt;
  }

  const Unexplained& device_;
  const uint16_t first_pool_;
  size_t replays_ = 0;
  size_t replayed_events_ = 0;
};

std::string Note(const Trace& trace, size_t device, const Guess& guess) {
  Bytes bytes;
  for (const auto& [event, pool] : guess) bytes += trace.devices[device].events[event].size;
  return absl::StrCat(
      "device ", trace.devices[device].device, ": ", guess.size(),
      guess.size() == 1 ? " segment" : " segments", " (", bytes.value(),
      " bytes in all), released from event ", guess.begin()->first,
      " on, are assumed to belong to private pools (of CUDA graphs or MemPools): the file does not "
      "say so for released segments, but only then does the replay follow every event");
}

bool DeviceMayHaveGonePools(const DeviceTrace& device) {
  bool released = false;
  for (const Event& event : device.events) {
    if (event.pool != 0 || event.kind == EventKind::kEmptyCache) return false;  // the file names it
    released |= IsRelease(event.kind);
  }
  return released;
}

}  // namespace

bool MayHaveGonePools(const Trace& trace) {
  return !trace.is_program && !trace.layout.has_event_pool_id &&
         std::any_of(trace.devices.begin(), trace.devices.end(), DeviceMayHaveGonePools);
}

std::optional<Explanation> FindGonePools(const Unexplained& device) {
  if (device.followed.exact || !DeviceMayHaveGonePools(device.trace->devices[device.device])) {
    return std::nullopt;
  }
  PoolSearch search(device);
  const std::optional<Guess> guess = search.Run();
  if (!guess.has_value()) return std::nullopt;
  return Explanation{.pools = search.PoolsOf(*guess),
                     .notes = {Note(*device.trace, device.device, *guess)}};
}

}  // namespace memreplay
