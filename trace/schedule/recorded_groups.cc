#include "trace/schedule/recorded_groups.h"

#include <algorithm>
#include <bit>

namespace memreplay {
namespace {

// The limits that distinguish the small and large pools of cudaMalloc segments.
constexpr Bytes kSmallRequest = MiB(1);
constexpr Bytes kSmallSegment = MiB(2);
// A block above max_split_size is not split; it serves a request that is smaller by less than this.
constexpr Bytes kMaxLeftOver = MiB(20);

bool IsRelease(const Event& event) {
  return event.kind == EventKind::kSegmentFree || event.kind == EventKind::kSegmentUnmap;
}

bool IsSupply(const Event& event) {
  return event.kind == EventKind::kSegmentAlloc || event.kind == EventKind::kSegmentMap;
}

class Grouper {
 public:
  Grouper(const EventView& events, absl::Span<const EventRole> roles, const GroupingFacts& facts,
          absl::FunctionRef<void(const RecordedGroup&)> take)
      : events_(events),
        roles_(roles),
        facts_(facts),
        take_(take),
        settings_(facts.settings),
        reserved_(facts.reserved_at_start) {}

  void Run() {
    const auto count = static_cast<uint32_t>(events_.size());
    for (uint32_t i = 0; i < count;) {
      for (; change_ < facts_.changes.size() && facts_.changes[change_].first <= i; ++change_) {
        settings_ = facts_.changes[change_].second;
      }
      switch (roles_[i]) {
        case EventRole::kLateCompletion:
        case EventRole::kSegmentEffect: AddEffect(i++); break;
        case EventRole::kOwnCompletion:
        case EventRole::kAside: CloseEmptyCache(i++); break;
        case EventRole::kImpliedFree:
        case EventRole::kRequest: i = AddRequest(i); break;
      }
    }
    CloseEmptyCache(count);
  }

 private:
  void AddEffect(uint32_t i) {
    if (!pending_) {
      pending_ = true;
      begin_ = i;
      reserved_before_ = reserved_;
    }
    Reserve(events_[i]);
  }

  void Reserve(const Event& event) {
    if (IsSupply(event)) reserved_ += event.size;
    if (IsRelease(event)) reserved_ -= event.size;
  }

  // Returns the index of the first event after the request's group.
  uint32_t AddRequest(uint32_t i) {
    if (pending_) [[unlikely]] {
      const EventKind kind = events_.kind(i);
      if (kind == EventKind::kAlloc || kind == EventKind::kOom) {
        const uint32_t own = EndOfEmptyCache(i);
        if (own > begin_) take_({begin_, own, RecordedGroup::kInferredEmptyCache});
        take_({own, i + 1, i});
        pending_ = false;
        return i + 1;
      }
      CloseEmptyCache(i);
    }
    // Most requests are told by the roles alone, without their events.
    uint32_t end = i + 1;
    if (end < roles_.size() && roles_[end] == EventRole::kOwnCompletion) {
      ++end;  // of a free
    } else if (!facts_.infer_empty_cache && events_.kind(i) == EventKind::kEmptyCache) {
      while (end < events_.size() &&
             (roles_[end] == EventRole::kLateCompletion || IsRelease(events_[end]))) {
        Reserve(events_[end++]);
      }
    }
    take_({i, end, i});
    return end;
  }

  // Makes the pending effects an empty_cache, since no later event could have caused them.
  void CloseEmptyCache(uint32_t end) {
    if (!pending_) return;
    pending_ = false;
    if (!facts_.infer_empty_cache) return;
    for (uint32_t i = begin_; i < end; ++i) {
      if (!IsSupply(events_[i])) {
        take_({begin_, end, RecordedGroup::kInferredEmptyCache});
        return;
      }
    }
  }

  // Returns the end of the pending effects before the malloc at `request` that belong to an
  // empty_cache.
  uint32_t EndOfEmptyCache(uint32_t request) const {
    if (!facts_.infer_empty_cache) return begin_;
    const Event malloc = events_[request];
    uint32_t release_end = begin_;  // after the last release
    for (uint32_t i = begin_; i < request; ++i) {
      if (IsRelease(events_[i])) release_end = i + 1;
    }
    bool stacks_known = false;  // of releases
    uint32_t foreign_end = begin_;
    for (uint32_t i = begin_; i < request; ++i) {
      const bool is_release = IsRelease(events_[i]);
      const bool is_found =
          facts_.completions_have_stacks && roles_[i] == EventRole::kLateCompletion;
      if ((!is_release && !is_found) || events_[i].text_or_stack == kNoStack ||
          malloc.text_or_stack == kNoStack) {
        continue;
      }
      stacks_known |= is_release;
      if (events_[i].text_or_stack != malloc.text_or_stack) foreign_end = i + 1;
    }
    if (release_end == begin_) return foreign_end;
    Bytes supply;
    for (uint32_t i = release_end; i < request; ++i) {
      if (IsSupply(events_[i])) supply += events_[i].size;
    }
    const bool failed = malloc.kind == EventKind::kOom;
    if (!failed && supply == Bytes()) return release_end;

    bool supplied_before = false;
    for (uint32_t i = begin_; i < release_end; ++i) supplied_before |= IsSupply(events_[i]);
    if (JustFreed(malloc) || WouldHaveServed(request, foreign_end, release_end)) return release_end;
    if (stacks_known) return foreign_end;
    const bool driver_had_room =
        !settings_.is_limited && reserved_before_ + supply <= facts_.peak_reserved;
    if (!failed && driver_had_room && !supplied_before && !settings_.releases_may_be_partial) {
      return release_end;
    }
    return begin_;
  }

  // Returns whether the request before the pending effects freed a block of the size, stream and
  // pool of `malloc`.
  bool JustFreed(const Event& malloc) const {
    if (begin_ == 0 || roles_[begin_ - 1] != EventRole::kOwnCompletion) return false;
    const Event freed = events_[begin_ - 1];
    return freed.size == malloc.size && freed.stream == malloc.stream && freed.pool == malloc.pool;
  }

  // Returns whether the effects [begin, end) released a segment or pages that were cached when
  // `request` looked for a block, and large enough.
  bool WouldHaveServed(uint32_t request, uint32_t begin, uint32_t end) const {
    const Event malloc = events_[request];
    const Bytes needed = Rounded(malloc.size);
    for (uint32_t i = begin; i < end; ++i) {
      // A flush waited for this free, so what it released was in use before.
      if (roles_[i] == EventRole::kLateCompletion) return false;
      const Event event = events_[i];
      if (IsRelease(event) && event.stream == malloc.stream && event.pool == malloc.pool &&
          Serves(event.size, needed) && IsOfKind(event, request)) {
        return true;
      }
    }
    return false;
  }

  // Returns the maximum size that a request of `size` is rounded up to.
  Bytes Rounded(Bytes size) const {
    const uint64_t bytes = std::max<uint64_t>(size.value(), 1);
    const uint64_t step =
        settings_.roundup_divisions == 0 ? 1 : std::bit_floor(bytes) / settings_.roundup_divisions;
    return RoundUp(size, Bytes(std::max<uint64_t>(step, 512)));
  }

  // Returns whether a cached block of `size` bytes certainly serves a request for `needed`.
  bool Serves(Bytes size, Bytes needed) const {
    const std::optional<Bytes>& limit = settings_.max_split_size;
    if (!limit.has_value() || size < *limit) return size >= needed;
    return needed >= *limit && size >= needed && size < needed + kMaxLeftOver;
  }

  // Returns whether `release` belongs to the kind of pool, small or large, that serves `request`.
  bool IsOfKind(const Event& release, uint32_t request) const {
    const bool small = events_[request].size <= kSmallRequest;
    if (release.kind == EventKind::kSegmentFree) return (release.size == kSmallSegment) == small;
    // Small pages rarely add up to large ones.
    const uint64_t page = facts_.large_page.value();
    if (page != 0 && (release.size.value() % page == 0) != small) return true;
    // Pages that the malloc maps again belong to the same reservation.
    for (uint32_t i = request; i-- > begin_ && events_[i].kind == EventKind::kSegmentMap;) {
      if (events_[i].address >= release.address &&
          events_[i].address < release.address + release.size) {
        return true;
      }
    }
    return false;
  }

  const EventView events_;
  const absl::Span<const EventRole> roles_;
  const GroupingFacts facts_;
  const absl::FunctionRef<void(const RecordedGroup&)> take_;
  SettingsFacts settings_;  // current
  size_t change_ = 0;       // next of the changes
  bool pending_ = false;    // there are effects since begin_ that belong to no request yet
  uint32_t begin_ = 0;
  Bytes reserved_;
  Bytes reserved_before_;  // at begin_
};

}  // namespace

void GroupRecorded(const EventView& events, absl::Span<const EventRole> roles,
                   const GroupingFacts& facts, absl::FunctionRef<void(const RecordedGroup&)> take) {
  Grouper(events, roles, facts, take).Run();
}

}  // namespace memreplay
