#include "sim/workload/lifetimes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memreplay {
namespace {

constexpr Bytes kUnit = Bytes(512);
constexpr uint32_t kNowhere = ~uint32_t{0};

Bytes Rounded(Bytes size) { return RoundUp(std::max(size, Bytes(1)), kUnit); }

class Collector {
 public:
  explicit Collector(const Schedule& schedule)
      : schedule_(schedule),
        explicit_(!schedule.is_program() || schedule.trace().completion == Completion::kExplicit),
        of_id_(schedule.allocation_count(), kNowhere) {}

  std::vector<Lifetime> Collect() {
    for (const StartAllocation& start : schedule_.start_allocations()) {
      Begin(start.id, 0, start.requested_size);
      if (start.state == BlockState::kPendingFree) {
        uses_.push_back({start.id, start.pending_stream});
        End(start.id, 0);
      }
    }
    const RequestView requests = schedule_.requests();
    for (size_t i = 0; i < requests.size(); ++i) Take(requests[i], i);
    const auto last = static_cast<uint32_t>(requests.size() + 1);
    for (Lifetime& lifetime : lifetimes_) {
      if (lifetime.end == kNowhere) lifetime.end = last;
      lifetime.end = std::max(lifetime.end, lifetime.begin + 1);
    }
    return std::move(lifetimes_);
  }

 private:
  struct StreamUse {
    AllocationId id;
    uint32_t stream;
  };

  void Take(const Event& request, size_t index) {
    const auto now = static_cast<uint32_t>(index + 1);
    switch (request.kind) {
      case EventKind::kAlloc:
        if (!RanOutWhenRecorded(schedule_, index)) Begin(request.id, now, request.size);
        break;
      case EventKind::kRecordStream:
        if (explicit_ && Live(request.id)) uses_.push_back({request.id, request.stream});
        break;
      case EventKind::kFree: End(request.id, now); break;
      case EventKind::kStreamDone: Done(request.stream, now); break;
      default: break;
    }
  }

  bool Live(AllocationId id) const { return id < of_id_.size() && of_id_[id] != kNowhere; }

  void Begin(AllocationId id, uint32_t now, Bytes size) {
    if (id >= of_id_.size() || size == Bytes(0)) return;
    of_id_[id] = static_cast<uint32_t>(lifetimes_.size());
    lifetimes_.push_back({now, kNowhere, size, Rounded(size)});
  }

  // Freed: over at once unless other streams use it.
  void End(AllocationId id, uint32_t now) {
    if (!Live(id)) return;
    const bool used = std::any_of(uses_.begin(), uses_.end(),
                                  [id](const StreamUse& use) { return use.id == id; });
    if (used) {
      pending_.push_back(id);
    } else {
      lifetimes_[of_id_[id]].end = now;
      of_id_[id] = kNowhere;
    }
  }

  // What was recorded on `stream` by blocks that are freed is complete. Uses by
  // blocks that are still live count from their free on.
  void Done(uint32_t stream, uint32_t now) {
    if (pending_.empty()) return;
    std::vector<AllocationId> waiting = std::move(pending_);
    pending_.clear();
    std::sort(waiting.begin(), waiting.end());
    std::erase_if(uses_, [&](const StreamUse& use) {
      return use.stream == stream && std::binary_search(waiting.begin(), waiting.end(), use.id);
    });
    for (const AllocationId id : waiting) End(id, now);
  }

  const Schedule& schedule_;
  const bool explicit_;
  std::vector<uint32_t> of_id_;  // position in lifetimes_ of what is live
  std::vector<Lifetime> lifetimes_;
  std::vector<StreamUse> uses_;  // of live and pending ones; few at any time
  std::vector<AllocationId> pending_;
};

// And the moment when it is first reached.
std::pair<Bytes, uint32_t> Peak(absl::Span<const Lifetime> lifetimes,
                                absl::Span<const uint32_t> by_end, Bytes Lifetime::*size) {
  Bytes live, peak;
  uint32_t moment = 0;
  size_t ended = 0;
  for (const Lifetime& lifetime : lifetimes) {
    for (; ended < by_end.size() && lifetimes[by_end[ended]].end <= lifetime.begin; ++ended) {
      live -= lifetimes[by_end[ended]].*size;
    }
    live += lifetime.*size;
    if (live > peak) {
      peak = live;
      moment = lifetime.begin;
    }
  }
  return {peak, moment};
}

}  // namespace

bool RanOutWhenRecorded(const Schedule& schedule, size_t request) {
  const auto begins = schedule.recorded_begin();
  const auto recorded = schedule.recorded();
  if (begins.empty()) return false;
  const size_t end = request + 1 < begins.size() ? begins[request + 1] : recorded.size();
  for (size_t i = begins[request]; i < end; ++i) {
    if (recorded.kind(i) == EventKind::kOom) return true;
  }
  return false;
}

std::vector<Lifetime> LifetimesOf(const Schedule& schedule) {
  return Collector(schedule).Collect();
}

std::vector<uint32_t> ByEnd(absl::Span<const Lifetime> lifetimes,
                            absl::Span<const uint32_t> items) {
  uint32_t last = 0;
  for (const uint32_t item : items) last = std::max(last, lifetimes[item].end);
  std::vector<uint32_t> place(size_t{last} + 2);  // behind those that end before
  for (const uint32_t item : items) ++place[lifetimes[item].end + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<uint32_t> by_end(items.size());
  for (const uint32_t item : items) by_end[place[lifetimes[item].end]++] = item;
  return by_end;
}

PeakLive PeakLiveOf(absl::Span<const Lifetime> lifetimes) {
  std::vector<uint32_t> all(lifetimes.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<uint32_t> by_end = ByEnd(lifetimes, all);
  const auto [requested, moment] = Peak(lifetimes, by_end, &Lifetime::requested);
  return {requested, Peak(lifetimes, by_end, &Lifetime::rounded).first, moment};
}

}  // namespace memreplay
