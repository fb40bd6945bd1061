#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/model/block.h"
#include "sim/recording/start_parts.h"
#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

class SegmentHistory {
 public:
  SegmentHistory(const Schedule& schedule, Bytes large_page)
      : schedule_(schedule), events_(schedule.recorded()), large_page_(large_page) {}

  StartSegmentList Undo() && {
    if (schedule_.final_state() != nullptr) {
      for (const SegmentInfo& segment : *schedule_.final_state()) {
        Range range = {segment, 0};
        range.segment.blocks.clear();
        ranges_.emplace(segment.address, std::move(range));
      }
    }
    const absl::Span<const uint32_t> effects = schedule_.segment_events();
    for (auto it = effects.rbegin(); it != effects.rend(); ++it) {
      const size_t i = *it;
      const Event event = events_[i];
      maps_pages_ |= event.kind == EventKind::kSegmentMap;
      switch (event.kind) {
        case EventKind::kSegmentAlloc: ranges_.erase(event.address); break;
        case EventKind::kSegmentMap: Unmap(event.address, event.address + event.size); break;
        case EventKind::kSegmentFree:
        case EventKind::kSegmentUnmap: Add(i); break;
        default: break;
      }
    }
    InferKindsFromBlocks();
    JoinRanges();
    InferKindsFromNeighbours();
    AddReservationBases();
    StartSegmentList result;
    std::optional<SegmentInfo> before;  // the last one that has bytes
    for (auto& [address, range] : ranges_) {
      const bool is_empty = range.segment.total_size == Bytes();
      const bool apart = is_empty || !before.has_value();
      if (IsKnown(range.segment) && IsPossible(range.segment, apart ? nullptr : &*before) &&
          result.segments.size() < Block::kMaxReservations) {
        if (!is_empty) before = range.segment;
        result.segments.push_back(std::move(range.segment));
      } else if (result.left_out.empty()) {
        result.left_out =
            absl::StrCat("the segment at 0x", absl::Hex(address.value()), " of ",
                         range.segment.total_size.value(),
                         " bytes, there at the beginning, is none that a driver hands out");
      }
    }
    return result;
  }

 private:
  struct Range {
    SegmentInfo segment;
    // The event that unmaps the range, for mapped ranges whose kind is still to be found. 0 if the
    // kind is known.
    size_t unmapped_by;
  };
  using Kind = std::tuple<StreamHandle, PoolId, bool>;

  // Returns whether its stream and pool are in the file's tables. An expandable one may have no
  // bytes.
  bool IsKnown(const SegmentInfo& segment) const {
    const Trace& trace = schedule_.trace();
    return std::binary_search(trace.streams.begin(), trace.streams.end(), segment.stream) &&
           std::find(trace.pools.begin(), trace.pools.end(), segment.pool_id) !=
               trace.pools.end() &&
           (segment.is_expandable || segment.total_size > Bytes(0));
  }

  void Add(size_t i) {
    const Event& event = events_[i];
    Range range;
    range.segment.address = event.address;
    range.segment.total_size = event.size;
    range.segment.stream = schedule_.stream_handle(event.stream);
    range.segment.pool_id = schedule_.pools()[event.pool];
    range.segment.is_expandable = event.kind == EventKind::kSegmentUnmap;
    range.segment.is_large = event.size > kSmallBuffer;
    range.segment.stack = event.text_or_stack;
    const bool whole_large_pages = event.size.value() % large_page_.value() == 0;
    if (range.segment.is_expandable && !whole_large_pages) range.segment.is_large = false;
    range.unmapped_by = range.segment.is_expandable && whole_large_pages ? i + 1 : 0;
    ranges_.insert_or_assign(event.address, std::move(range));
  }

  // Removes [begin, end) from the mapped ranges.
  void Unmap(Address begin, Address end) {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin()) --it;
    while (it != ranges_.end() && it->first < end) {
      const Range range = it->second;
      const Address range_end = range.segment.address + range.segment.total_size;
      if (!range.segment.is_expandable || range_end <= begin) {
        ++it;
        continue;
      }
      it = ranges_.erase(it);
      if (range.segment.address < begin) {
        Range front = range;
        front.segment.total_size = begin - range.segment.address;
        ranges_.emplace(front.segment.address, std::move(front));
      }
      if (end < range_end) {
        Range back = range;
        back.segment.address = end;
        back.segment.total_size = range_end - end;
        ranges_.emplace(end, std::move(back));
      }
    }
  }

  // Joins ranges that touch. Reservations end in pages that are never mapped.
  void JoinRanges() {
    for (auto it = ranges_.begin(); it != ranges_.end();) {
      const auto next = std::next(it);
      if (next == ranges_.end()) return;
      SegmentInfo& segment = it->second.segment;
      const SegmentInfo& other = next->second.segment;
      if (!segment.is_expandable || !other.is_expandable || segment.stream != other.stream ||
          segment.pool_id != other.pool_id ||
          segment.address + segment.total_size != other.address) {
        it = next;
        continue;
      }
      segment.total_size += other.total_size;
      if (it->second.unmapped_by != 0 && next->second.unmapped_by == 0) {
        segment.is_large = other.is_large;
        it->second.unmapped_by = 0;
      }
      ranges_.erase(next);
    }
  }

  bool AllKindsAreKnown() const {
    return std::all_of(ranges_.begin(), ranges_.end(),
                       [](const auto& entry) { return entry.second.unmapped_by == 0; });
  }

  // Infers the kind of whole large pages, which may be of either kind, from the first block seen in
  // them while they exist.
  void InferKindsFromBlocks() {
    if (AllKindsAreKnown()) return;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) continue;
      auto it = ranges_.upper_bound(event.address);
      if (it == ranges_.begin()) continue;
      Range& range = std::prev(it)->second;
      if (i < range.unmapped_by &&
          event.address < range.segment.address + range.segment.total_size) {
        range.segment.is_large = event.size > kSmallSize;
        range.unmapped_by = 0;
      }
    }
  }

  // Infers the kind of ranges without blocks from the nearest range of that stream and pool, unless
  // that is farther away than any reservation was ever filled. Without such a range the kind is
  // large, because few small pools fill so many pages.
  void InferKindsFromNeighbours() {
    if (AllKindsAreKnown()) return;
    const Bytes reach = PeakReserved();
    struct Nearest {
      Bytes distance;
      bool is_large = true;
    };
    std::map<Address, Nearest> nearest;
    // Goes upwards, then downwards, with the last known range of each stream and pool.
    std::map<std::pair<StreamHandle, PoolId>, const SegmentInfo*> last;
    const auto pass = [&](Address begin, const Range& range) {
      const SegmentInfo& segment = range.segment;
      const auto kind = std::pair(segment.stream, segment.pool_id);
      if (range.unmapped_by == 0) {
        if (segment.is_expandable) last[kind] = &segment;
        return;
      }
      Nearest& found = nearest.try_emplace(begin, Nearest{reach}).first->second;
      const auto it = last.find(kind);
      if (it == last.end()) return;
      const Address address = it->second->address;
      const Bytes distance = address < begin ? begin - address : address - begin;
      if (distance < found.distance) found = {distance, it->second->is_large};
    };
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it) pass(it->first, it->second);
    last.clear();
    for (auto it = ranges_.rbegin(); it != ranges_.rend(); ++it) pass(it->first, it->second);
    for (const auto& [begin, found] : nearest)
      ranges_.find(begin)->second.segment.is_large = found.is_large;
  }

  Bytes PeakReserved() const {
    Bytes now;
    for (const auto& [address, range] : ranges_) now += range.segment.total_size;
    Bytes peak = now;
    for (const uint32_t i : schedule_.segment_events()) {
      const Event event = events_[i];
      if (event.kind == EventKind::kSegmentAlloc || event.kind == EventKind::kSegmentMap) {
        now += event.size;
        peak = std::max(peak, now);
      } else {
        now -= std::min(now, event.size);
      }
    }
    return peak;
  }

  // Adds an empty range where a reservation begins: where pages are mapped later below every range
  // of their kind, as long as the reservation exists.
  void AddReservationBases() {
    if (!maps_pages_) return;
    // A kind's reservation: from the lowest to the highest page seen, and how much of it is mapped.
    // It ends with its last page; pages mapped later belong to another one.
    struct Reservation {
      Address begin;
      Address end;
      Bytes mapped;
      bool is_gone = false;
    };
    std::map<Kind, Reservation> reservations;
    for (const auto& [address, range] : ranges_) {
      const SegmentInfo& segment = range.segment;
      if (!segment.is_expandable) continue;
      Reservation& it = reservations
                            .try_emplace(Kind(segment.stream, segment.pool_id, segment.is_large),
                                         Reservation{address, address, Bytes()})
                            .first->second;
      it.end = address + segment.total_size;
      it.mapped += segment.total_size;
    }
    if (reservations.empty()) return;
    std::map<Kind, Address> bases;
    const auto map_pages = [&](const Event& event, bool is_large) {
      const Kind kind(schedule_.stream_handle(event.stream), schedule_.pools()[event.pool],
                      is_large);
      const auto it = reservations.find(kind);
      if (it == reservations.end() || it->second.is_gone) return;
      Reservation& reservation = it->second;
      reservation.mapped += event.size;
      reservation.end = std::max(reservation.end, event.address + event.size);
      const Bytes page = is_large ? large_page_ : kSmallBuffer;
      if (event.address >= reservation.begin ||
          (reservation.begin - event.address).value() % page.value() != 0) {
        return;
      }
      reservation.begin = bases[kind] = event.address;
    };
    const auto unmap_pages = [&](const Event& event) {
      for (auto& [kind, reservation] : reservations) {
        if (event.address < reservation.begin || event.address >= reservation.end) continue;
        reservation.mapped -= std::min(reservation.mapped, event.size);
        reservation.is_gone |= reservation.mapped == Bytes();
      }
    };
    // The request's own entry, which follows, shows what kind of pages were mapped.
    std::vector<Event> pending;
    for (size_t i = 0; i < events_.size(); ++i) {
      const EventKind event_kind = events_.kind(i);
      if (event_kind == EventKind::kSegmentMap || event_kind == EventKind::kSegmentUnmap) {
        pending.push_back(events_[i]);
      } else if (!pending.empty() &&
                 (event_kind == EventKind::kAlloc || event_kind == EventKind::kOom ||
                  event_kind == EventKind::kFree)) {
        const Event event = events_[i];
        for (const Event& effect : std::exchange(pending, {})) {
          if (effect.kind == EventKind::kSegmentUnmap) {
            unmap_pages(effect);
          } else if (event.kind != EventKind::kFree) {
            map_pages(effect, event.size > kSmallSize);
          }
        }
      }
    }
    for (const auto& [kind, base] : bases) {
      Range empty = {};
      empty.segment.address = base;
      empty.segment.is_expandable = true;
      std::tie(empty.segment.stream, empty.segment.pool_id, empty.segment.is_large) = kind;
      ranges_.emplace(base, std::move(empty));
    }
  }

  const Schedule& schedule_;
  const EventView events_;
  const Bytes large_page_;
  std::map<Address, Range> ranges_;
  bool maps_pages_ = false;  // an event does
};

}  // namespace

StartSegmentList StartSegments(const Schedule& schedule, Bytes large_page) {
  return SegmentHistory(schedule, large_page).Undo();
}

}  // namespace memreplay
