#include "sim/recording/gone_pools.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trace/schedule/recorded_pools.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

// In search of one device's pools.
constexpr size_t kMostReplays = 400;
constexpr size_t kMostEvents = 20'000'000;
constexpr uint16_t kMostPools = 8;  // gone ones at a time

bool IsRelease(EventKind kind) {
  return kind == EventKind::kSegmentFree || kind == EventKind::kSegmentUnmap;
}

// Which pools the released segments were of: by the event that released one, its pool; the
// default pool's are left out.
using Guess = std::map<uint32_t, uint16_t>;

struct Tried {
  Guess guess;
  RecordingFollowed followed;
};

class Search {
 public:
  // Writes pools into the events of `trace`.
  Search(std::shared_ptr<Trace> trace, size_t device, const AllocatorConfig& config,
         const TorchProfile& profile)
      : trace_(std::move(trace)),
        device_(device),
        config_(config),
        profile_(profile),
        first_pool_(static_cast<uint16_t>(trace_->pools.size())) {}

  // The best guess of all is tried further first. Nothing if none is exact.
  std::optional<Guess> Run(const RecordingFollowed& untold) {
    std::vector<Tried> open = {{{}, untold}};
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

  // Leaves the events as they were.
  void Untell() {
    for (Event& event : events()) event.pool = 0;
    trace_->pools.resize(first_pool_);
  }

  // Leaves the events with the pools of a guess.
  void Tell(const Guess& guess) {
    Untell();
    for (const auto& [event, pool] : guess) {
      while (trace_->pools.size() <= pool) {
        const uint64_t number = trace_->pools.size() - first_pool_ + 1;
        trace_->pools.push_back(PoolId{number, number});
      }
      events()[event].pool = pool;
    }
    const std::vector<uint16_t> pools =
        PoolsBySegments(trace_->devices[device_].final_state, trace_->pools, events());
    for (size_t i = 0; i < pools.size(); ++i) events()[i].pool = pools[i];
  }

 private:
  std::vector<Event>& events() { return trace_->devices[device_].events.kept(); }

  bool is_spent() const { return replays_ > kMostReplays || replayed_events_ > kMostEvents; }

  Tried Try(Guess guess) {
    Tell(guess);
    const Schedule schedule = Schedule::Build(trace_, device_);
    ++replays_;
    replayed_events_ += events().size();
    return {std::move(guess), FollowRecording(schedule, config_, profile_)};
  }

  static bool IsFurther(const Tried& a, const Tried& b) {
    return a.followed.until_event > b.followed.until_event;
  }

  // Where a replay parts from the recording, a block was left alone that fitted, or one was taken
  // that another pool's request may have: one of the two segments is of another pool. What comes
  // further with that is told.
  std::vector<Tried> Further(const Tried& base) {
    std::vector<Tried> found;
    if (!base.followed.divergence.has_value()) return found;
    const auto next_pool = std::max(first_pool_, static_cast<uint16_t>(1 + Largest(base.guess)));
    const auto last_pool =
        static_cast<uint16_t>(std::min<int>(next_pool, first_pool_ + kMostPools - 1));
    for (uint16_t pool = 1; pool <= last_pool; ++pool) {
      // The request was another pool's.
      if (std::optional<Tried> tried = Move(base, base.followed.divergence->recorded, pool)) {
        if (tried->followed.exact || IsFurther(*tried, base)) found.push_back(*std::move(tried));
      }
      // The request was not, and what it left alone was. There may be several such blocks.
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

  // The guess in which the segment of an event is of `pool`; nothing if it is that already, or is
  // there at the end.
  std::optional<Tried> Move(const Tried& base, const std::optional<Event>& event, uint16_t pool) {
    if (!event.has_value()) return std::nullopt;
    const std::optional<uint32_t> release =
        ReleaseOf(event->address, base.followed.divergence->index);
    if (!release.has_value()) return std::nullopt;
    Guess guess = base.guess;
    if (const auto it = guess.find(*release); it != guess.end() && it->second == pool) {
      return std::nullopt;
    }
    guess[*release] = pool;
    return Try(std::move(guess));
  }

  // The event that releases the segment in which `address` lies at the moment before event `from`.
  std::optional<uint32_t> ReleaseOf(Address address, uint64_t from) {
    for (size_t i = from; i < events().size(); ++i) {
      const Event& event = events()[i];
      if (IsRelease(event.kind) && event.address <= address &&
          address < event.address + event.size) {
        return static_cast<uint32_t>(i);
      }
    }
    return std::nullopt;
  }

  const std::shared_ptr<Trace> trace_;
  const size_t device_;
  const AllocatorConfig& config_;
  const TorchProfile& profile_;
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
    if (event.pool != 0 || event.kind == EventKind::kEmptyCache) return false;  // the file tells
    released |= IsRelease(event.kind);
  }
  return released;
}

}  // namespace

bool MayHaveGonePools(const Trace& trace) {
  return !trace.is_program && !trace.layout.has_event_pool_id &&
         std::any_of(trace.devices.begin(), trace.devices.end(), DeviceMayHaveGonePools);
}

std::vector<std::string> TellGonePools(const std::shared_ptr<Trace>& trace,
                                       const AllocatorConfig& config, const TorchProfile& profile,
                                       absl::Span<const RecordingFollowed> untold) {
  std::vector<std::string> notes;
  auto followed = untold.begin();
  for (size_t device = 0; device < trace->devices.size(); ++device) {
    if (trace->devices[device].events.empty()) continue;
    const RecordingFollowed& without = *followed++;
    if (without.exact || !DeviceMayHaveGonePools(trace->devices[device])) continue;
    Search search(trace, device, config, profile);
    if (const std::optional<Guess> guess = search.Run(without); guess.has_value()) {
      search.Tell(*guess);
      notes.push_back(Note(*trace, device, *guess));
    } else {
      search.Untell();
    }
  }
  return notes;
}

}  // namespace memreplay
