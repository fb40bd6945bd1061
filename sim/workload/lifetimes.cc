#include "sim/workload/lifetimes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

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
        Use(start.id, start.pending_stream);
        Free(start.id, 0);
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
  // The other streams that use a block, until they are done with it.
  struct Uses {
    absl::flat_hash_set<uint32_t> streams;
    bool is_freed = false;
  };

  void Take(const Event& request, size_t index) {
    const auto now = static_cast<uint32_t>(index + 1);
    switch (request.kind) {
      case EventKind::kAlloc:
        if (!RanOutWhenRecorded(schedule_, index)) Begin(request.id, now, request.size);
        break;
      case EventKind::kRecordStream:
        if (explicit_) Use(request.id, request.stream);
        break;
      case EventKind::kFree: Free(request.id, now); break;
      case EventKind::kStreamDone: Done(request.stream, now); break;
      default: break;
    }
  }

  bool Live(AllocationId id) const { return id < of_id_.size() && of_id_[id] != kNowhere; }

  void Begin(AllocationId id, uint32_t now, Bytes size) {
    if (id >= of_id_.size() || size == Bytes(0)) return;
    if (size > kMaxDeviceMemory || in_use_ + Rounded(size) > kMaxDeviceMemory) return;
    in_use_ += Rounded(size);
    of_id_[id] = static_cast<uint32_t>(lifetimes_.size());
    lifetimes_.push_back({now, kNowhere, size, Rounded(size)});
  }

  void Use(AllocationId id, uint32_t stream) {
    if (!Live(id)) return;
    Uses& uses = uses_[id];
    uses.streams.insert(stream);
    if (uses.is_freed) waiting_[stream].push_back(id);
  }

  // Frees an allocation, at once unless other streams use it.
  void Free(AllocationId id, uint32_t now) {
    if (!Live(id)) return;
    const auto uses = uses_.find(id);
    if (uses == uses_.end()) return End(id, now);
    if (uses->second.is_freed) return;
    uses->second.is_freed = true;
    // In any order.
    for (const uint32_t stream : uses->second.streams) waiting_[stream].push_back(id);
  }

  // Completes what was recorded on `stream` by freed blocks. Uses by blocks that are still live
  // count from their free on.
  void Done(uint32_t stream, uint32_t now) {
    const auto waiting = waiting_.find(stream);
    if (waiting == waiting_.end()) return;
    const std::vector<AllocationId> ids = std::move(waiting->second);
    waiting_.erase(waiting);
    for (const AllocationId id : ids) {
      const auto uses = uses_.find(id);
      if (uses == uses_.end()) continue;
      uses->second.streams.erase(stream);
      if (!uses->second.streams.empty()) continue;
      uses_.erase(uses);
      End(id, now);
    }
  }

  void End(AllocationId id, uint32_t now) {
    Lifetime& lifetime = lifetimes_[of_id_[id]];
    lifetime.end = now;
    in_use_ -= lifetime.rounded;
    of_id_[id] = kNowhere;
  }

  const Schedule& schedule_;
  const bool explicit_;
  std::vector<uint32_t> of_id_;  // position of a live allocation in lifetimes_
  std::vector<Lifetime> lifetimes_;
  Bytes in_use_;  // rounded
  absl::flat_hash_map<AllocationId, Uses> uses_;
  absl::flat_hash_map<uint32_t, std::vector<AllocationId>> waiting_;  // freed ones, by stream
};

// Returns the peak and the moment when it is first reached.
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
  std::vector<uint32_t> place(size_t{last} + 2);  // behind those that end earlier
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
  const auto [rounded, rounded_moment] = Peak(lifetimes, by_end, &Lifetime::rounded);
  return {requested, moment, rounded, rounded_moment};
}

}  // namespace memreplay
