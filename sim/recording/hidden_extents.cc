#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "sim/recording/start_parts.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

constexpr uint32_t kClosed = 0xffffffff;

using Intervals = std::vector<std::pair<int64_t, int64_t>>;

// Sorts intervals in ascending order and joins those that overlap.
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

// A pass over the addresses. It knows the live blocks of the large pools' cudaMalloc segments.
class Follower {
 public:
  Follower(const Schedule& schedule, const AllocatorConfig& config, const TorchProfile& profile,
           const MemoryState& segments, std::vector<OpenExtent>& open)
      : schedule_(schedule), config_(config), profile_(profile), open_(open) {
    for (const SegmentInfo& segment : segments) {
      for (const BlockInfo& block : segment.blocks) active_bytes_ += block.size;
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
    const EventView events = schedule_.recorded();
    const EventKind gone = EndOfLife(schedule_.trace(), schedule_.device_trace());
    bool releases = false;  // since the last request; its lookup preceded them
    Address fresh;          // segment obtained by the current request
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
                     schedule_.pools()[event.pool]);
        }
      } else if (event.kind == EventKind::kAlloc) {
        OnAlloc(event, event.address == fresh, releases);
      } else if (event.kind == EventKind::kSnapshot) {
        snapshots_.push_back({event_,
                              event.size.signed_value() - active_bytes_.signed_value(),
                              {active_.begin(), active_.end()}});
      }
      if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree ||
          event.kind == EventKind::kOom) {
        releases = false;
        fresh = Address();
      }
    }
    FitSnapshots();
    return std::move(evidence_);
  }

 private:
  // A recorded snapshot, in which the slacks of `open` add up to `slack`.
  struct Snapshot {
    uint64_t event;
    int64_t slack;
    std::set<uint32_t> open;
  };

  struct Live {
    Bytes size;               // minimum size, while the extent is open
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

  // Returns where the free range behind `block` ends.
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
    if (event.id == kNoAllocation) return;  // its request was lost
    const auto it = live_.find(event.address);
    if (it == live_.end()) {
      active_bytes_ -= RoundSize(event.size, config_, profile_);
      return;
    }
    active_bytes_ -= it->second.size;
    if (it->second.open != kClosed) {
      open_[it->second.open].freed_by = event_;
      Close(it->second.open);
    }
    live_.erase(it);
  }

  void OnAlloc(const Event& event, bool is_fresh, bool releases) {
    const Bytes rounded = RoundSize(event.size, config_, profile_);
    const auto segment = IsSmall(rounded) ? segments_.end() : SegmentOf(event.address);
    if (segment == segments_.end()) {  // it is small, expandable, or unknown
      active_bytes_ += rounded;
      return;
    }
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
    const Bytes size = split ? rounded : room;
    live_.emplace_hint(after, event.address, Live{size, kClosed});
    active_bytes_ += size;
  }

  void Reveal(const Event& event, Live& block, Bytes slack) {
    OpenExtent& open = open_[block.open];
    const int64_t value = slack.signed_value();
    const bool excluded =
        std::any_of(open.ruled_out.begin(), open.ruled_out.end(), [value](const auto& interval) {
          return interval.first <= value && value <= interval.second;
        });
    if (slack > open.max_slack || slack.value() % kMinBlockSize.value() != 0) {
      Contradict(event, "is farther behind a live block than that block can reach");
    } else if (excluded) {
      Contradict(event, "implies an extent under which an earlier block was not the best fit");
    }
    open.revealed = slack;
    Close(block.open);
    block.size += slack;
    active_bytes_ += slack;
    block.open = kClosed;
  }

  // Fits slacks to snapshots. Extents only ever close, so what is open at a snapshot was open at
  // all earlier ones, and only the difference from one to the next must be fitted.
  void FitSnapshots() {
    for (Snapshot& snapshot : snapshots_) {
      std::erase_if(snapshot.open, [&](uint32_t index) {
        const std::optional<Bytes>& revealed = open_[index].revealed;
        if (revealed.has_value()) snapshot.slack -= revealed->signed_value();
        return revealed.has_value();
      });
    }
    std::set<uint32_t> fitted;
    int64_t fitted_slack = 0;
    for (size_t i = snapshots_.size(); i-- > 0;) {
      std::vector<uint32_t> added;
      std::set_difference(snapshots_[i].open.begin(), snapshots_[i].open.end(), fitted.begin(),
                          fitted.end(), std::back_inserter(added));
      Fit(added, snapshots_[i].slack - fitted_slack);
      fitted = snapshots_[i].open;
      fitted_slack = snapshots_[i].slack;
    }
  }

  // Finds slacks with that sum, each in turn as large as possible.
  void Fit(const std::vector<uint32_t>& open, int64_t sum) {
    std::vector<std::vector<Bytes>> values;
    for (uint32_t index : open) {
      values.push_back(FeasibleSlacks(open_[index]));
      if (values.back().empty()) return;
      sum -= values.back().front().signed_value();
    }
    if (sum < 0) return;
    std::vector<Bytes> chosen;
    for (const std::vector<Bytes>& feasible : values) {
      const Bytes most = feasible.front() + Bytes(static_cast<uint64_t>(sum));
      chosen.push_back(*std::prev(std::upper_bound(feasible.begin(), feasible.end(), most)));
      sum -= (chosen.back() - feasible.front()).signed_value();
    }
    if (sum != 0) return;
    for (size_t i = 0; i < open.size(); ++i) {
      (open.size() == 1 ? open_[open[i]].revealed : open_[open[i]].assumed) = chosen[i];
    }
  }

  // Rules out slacks. The block taken had `taken` bytes, so smaller ones that would have fitted, or
  // equal ones at a lower address, did not exist.
  void RuleOut(SegmentMap::const_iterator where, Address address, Bytes taken, Bytes rounded,
               uint32_t except, bool is_fresh) {
    // Under max_split_size a block that fits may be rejected in favour of a new segment.
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
      // It is followed by a free block of `most` - slack bytes at `begin` + slack.
      const Address begin = open.address + open.rounded;
      const int64_t most = (RoomEnd(block, segment) - begin).signed_value();
      const int64_t last = most - rounded.signed_value();
      int64_t first = 0;
      if (!is_fresh) {
        const int64_t equal = most - taken.signed_value();
        // Later releases do not choose the lower one but the older.
        const bool equal_is_lower = profile_.free_tie == FreeTie::kAddress &&
                                    begin.value() + static_cast<uint64_t>(equal) < address.value();
        first = std::max<int64_t>(0, equal_is_lower ? equal : equal + 1);
      }
      if (first > last || first > open.max_slack.signed_value()) continue;
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
  Bytes active_bytes_;  // of the device, with open extents at their minimum
  std::vector<Snapshot> snapshots_;
  uint64_t event_ = 0;
  ExtentEvidence evidence_;
};

}  // namespace

ExtentEvidence FollowAddresses(const Schedule& schedule, const AllocatorConfig& config,
                               const TorchProfile& profile, const MemoryState& segments,
                               std::vector<OpenExtent>& open) {
  return Follower(schedule, config, profile, segments, open).Run();
}

std::vector<Bytes> FeasibleSlacks(const OpenExtent& open) {
  Intervals intervals = open.ruled_out;
  MergeIntervals(intervals);
  std::vector<Bytes> slacks;
  auto interval = intervals.begin();
  for (Bytes slack; slack <= open.max_slack; slack += kMinBlockSize) {
    while (interval != intervals.end() && interval->second < slack.signed_value()) ++interval;
    if (interval != intervals.end() && interval->first <= slack.signed_value()) continue;
    slacks.push_back(slack);
  }
  return slacks;
}

}  // namespace memreplay
