#include "sim/hidden_extents.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "sim/size_rules.h"

namespace memreplay {
namespace {

constexpr uint32_t kClosed = 0xffffffff;

using Intervals = std::vector<std::pair<int64_t, int64_t>>;

// Ascending, those that overlap joined.
void MergeIntervals(Intervals& intervals) {
  std::sort(intervals.begin(), intervals.end());
  size_t kept = 0;
  for (const auto& interval : intervals) {
    if (kept > 0 && interval.first <= intervals[kept - 1].second + 1) {
      intervals[kept - 1].second = std::max(intervals[kept - 1].second, interval.second);
    } else {
      intervals[kept++] = interval;
    }
  }
  intervals.resize(kept);
}

// What is known while following the addresses: the live blocks of the large
// pools' cudaMalloc segments.
class Follower {
 public:
  Follower(const Schedule& schedule, const AllocatorConfig& config, const TorchProfile& profile,
           const MemoryState& segments, std::vector<OpenExtent>& open)
      : schedule_(schedule), config_(config), profile_(profile), open_(open) {
    for (const SegmentInfo& segment : segments) {
      if (!segment.is_large || segment.is_expandable) continue;
      AddSegment(segment.address, segment.total_size, segment.stream, segment.pool_id);
      for (const BlockInfo& block : segment.blocks) {
        live_.emplace(block.address, Live{block.size, kClosed});
      }
    }
    for (uint32_t i = 0; i < open.size(); ++i) {
      live_[open[i].address].open = i;
      active_.push_back(i);
    }
  }

  ExtentEvidence Run() {
    const absl::Span<const Event> events = schedule_.recorded();
    const bool has_completions = std::any_of(events.begin(), events.end(), [](const Event& e) {
      return e.kind == EventKind::kFreeCompleted;
    });
    const EventKind gone = has_completions ? EventKind::kFreeCompleted : EventKind::kFree;
    bool releases = false;  // since the last request: the lookup came before them
    Address fresh;          // segment obtained by the request at hand
    for (event_ = 0; event_ < events.size() && !active_.empty(); ++event_) {
      const Event& event = events[event_];
      if (event.kind == gone) {
        OnGone(event);
      } else if (event.kind == EventKind::kSegmentFree) {
        releases = true;
        segments_.erase(event.address);
      } else if (event.kind == EventKind::kSegmentAlloc) {
        fresh = event.address;
        if (event.size > kSmallBuffer) {
          AddSegment(event.address, event.size, schedule_.stream_handle(event.stream),
                     schedule_.trace().pools[event.pool]);
        }
      } else if (event.kind == EventKind::kAlloc) {
        OnAlloc(event, event.address == fresh, releases);
      }
      if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
          event.kind == EventKind::kOom) {
        releases = false;
        fresh = Address();
      }
    }
    return std::move(evidence_);
  }

 private:
  struct Live {
    Bytes size;               // least size, while the extent is open
    uint32_t open = kClosed;  // index into open_
  };
  struct Segment {
    Bytes size;
    StreamHandle stream;
    PoolId pool;
  };
  using SegmentMap = std::map<Address, Segment>;
  using LiveMap = std::map<Address, Live>;

  void AddSegment(Address address, Bytes size, StreamHandle stream, PoolId pool) {
    segments_.insert_or_assign(address, Segment{size, stream, pool});
  }

  SegmentMap::const_iterator SegmentOf(Address address) const {
    auto it = segments_.upper_bound(address);
    if (it == segments_.begin()) return segments_.end();
    --it;
    return address < it->first + it->second.size ? it : segments_.end();
  }

  Address EndOf(SegmentMap::const_iterator segment) const {
    return segment->first + segment->second.size;
  }

  // Where the free range behind `block` ends.
  Address RoomEnd(LiveMap::const_iterator block, SegmentMap::const_iterator segment) const {
    const auto next = std::next(block);
    return next == live_.end() ? EndOf(segment) : std::min(EndOf(segment), next->first);
  }

  void Contradict(const Event& event, std::string_view why) {
    if (evidence_.contradicted_at.has_value()) return;
    evidence_.contradicted_at = event_;
    evidence_.contradiction = absl::StrCat("alloc of ", event.size.value(), " bytes at 0x",
                                           absl::Hex(event.address.value()), " ",
                                           absl::string_view(why.data(), why.size()));
  }

  void Close(uint32_t open) {
    const auto it = std::find(active_.begin(), active_.end(), open);
    if (it == active_.end()) return;
    *it = active_.back();
    active_.pop_back();
  }

  void OnGone(const Event& event) {
    const auto it = live_.find(event.address);
    if (it == live_.end()) return;
    if (it->second.open != kClosed) {
      open_[it->second.open].freed_by = event_;
      Close(it->second.open);
    }
    live_.erase(it);
  }

  void OnAlloc(const Event& event, bool is_fresh, bool releases) {
    const Bytes rounded = RoundSize(event.size, config_, profile_);
    if (IsSmall(rounded)) return;
    const auto segment = SegmentOf(event.address);
    if (segment == segments_.end()) return;  // expandable, or not known
    const auto after = live_.lower_bound(event.address);
    if (after != live_.end() && after->first == event.address) {
      return Contradict(event, "lies on a live block");
    }
    const Address room_end =
        after == live_.end() ? EndOf(segment) : std::min(EndOf(segment), after->first);
    const Bytes room = room_end - event.address;
    if (rounded > room) return Contradict(event, "does not fit there");

    uint32_t revealed = kClosed;
    if (after != live_.begin() && std::prev(after)->first >= segment->first) {
      Live& before = std::prev(after)->second;
      const Address before_end = std::prev(after)->first + before.size;
      if (before.open != kClosed && event.address >= before_end) {
        revealed = before.open;
        Reveal(event, before, event.address - before_end);
      } else if (before_end != event.address) {
        Contradict(event, "does not start where a free block does");
      }
    } else if (segment->first != event.address) {
      Contradict(event, "does not start where a free block does");
    }
    if (!releases) RuleOut(segment, event.address, room, rounded, revealed, is_fresh);

    const Bytes rest = room - rounded;
    const bool split = config_.expandable_segments
                           ? rest >= kMinBlockSize
                           : rounded < config_.max_split_size && rest > kSmallSize;
    live_.emplace_hint(after, event.address, Live{split ? rounded : room, kClosed});
  }

  void Reveal(const Event& event, Live& block, Bytes slack) {
    OpenExtent& open = open_[block.open];
    const int64_t value = slack.signed_value();
    const bool excluded =
        std::any_of(open.ruled_out.begin(), open.ruled_out.end(), [value](const auto& interval) {
          return interval.first <= value && value <= interval.second;
        });
    if (slack > open.most_slack || slack.value() % kMinBlockSize.value() != 0) {
      Contradict(event, "is farther behind a live block than that can reach");
    } else if (excluded) {
      Contradict(event, "tells an extent under which an earlier block was no best fit");
    }
    open.revealed = slack;
    Close(block.open);
    block.size += slack;
    block.open = kClosed;
  }

  // The block taken had `taken` bytes; smaller ones that would have done, or at a
  // lower address with as many, were not there.
  void RuleOut(SegmentMap::const_iterator where, Address address, Bytes taken, Bytes rounded,
               uint32_t except, bool is_fresh) {
    // Under max_split_size a block that fits may be refused for a new segment.
    if (is_fresh && config_.max_split_size != kUnlimited) return;
    for (uint32_t index : active_) {
      if (index == except) continue;
      OpenExtent& open = open_[index];
      const auto block = live_.find(open.address);
      const auto segment = SegmentOf(open.address);
      if (segment == segments_.end() || segment->second.stream != where->second.stream ||
          segment->second.pool != where->second.pool) {
        continue;
      }
      // Behind it lies a free block of `most` - slack bytes, at `begin` + slack.
      const Address begin = open.address + open.rounded;
      const int64_t most = (RoomEnd(block, segment) - begin).signed_value();
      const int64_t last = most - rounded.signed_value();
      int64_t first = 0;
      if (!is_fresh) {
        const int64_t equal = most - taken.signed_value();
        const bool equal_is_lower = begin.value() + static_cast<uint64_t>(equal) < address.value();
        first = std::max<int64_t>(0, equal_is_lower ? equal : equal + 1);
      }
      if (first > last || first > open.most_slack.signed_value()) continue;
      open.ruled_out_by = event_;
      if (!open.ruled_out.empty() && open.ruled_out.back().first <= first &&
          open.ruled_out.back().second >= last) {
        continue;
      }
      open.ruled_out.emplace_back(first, last);
      if (open.ruled_out.size() >= open.merge_at) {
        MergeIntervals(open.ruled_out);
        open.merge_at = 2 * open.ruled_out.size() + 64;
      }
    }
  }

  const Schedule& schedule_;
  const AllocatorConfig& config_;
  const TorchProfile& profile_;
  std::vector<OpenExtent>& open_;
  std::vector<uint32_t> active_;  // indexes of extents still open
  SegmentMap segments_;
  LiveMap live_;
  uint64_t event_ = 0;
  ExtentEvidence evidence_;
};

}  // namespace

ExtentEvidence FollowAddresses(const Schedule& schedule, const AllocatorConfig& config,
                               const TorchProfile& profile, const MemoryState& segments,
                               std::vector<OpenExtent>& open) {
  return Follower(schedule, config, profile, segments, open).Run();
}

SlackChoices FeasibleSlacks(const OpenExtent& open) {
  Intervals intervals = open.ruled_out;
  MergeIntervals(intervals);
  constexpr int64_t kStep = static_cast<int64_t>(kMinBlockSize.value());
  SlackChoices choices;
  const auto add = [&choices](int64_t first, int64_t last) {  // multiples of kStep
    if (first > last) return;
    if (choices.count == 0) choices.smallest = Bytes(static_cast<uint64_t>(first));
    choices.largest = Bytes(static_cast<uint64_t>(last));
    choices.count += static_cast<uint64_t>((last - first) / kStep + 1);
  };
  int64_t next = 0;
  const int64_t most = open.most_slack.signed_value();
  for (const auto& [first, last] : intervals) {
    // The last multiple below `first`, the next above `last`.
    if (first > next) add(next, std::min(most, (first - 1) / kStep * kStep));
    next = std::max(next, (last / kStep + 1) * kStep);
  }
  add(next, most / kStep * kStep);
  return choices;
}

}  // namespace memreplay
