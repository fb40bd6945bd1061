// Changes when the allocations of a schedule are made and freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/units.h"

namespace memreplay {

inline constexpr uint32_t kNoRequest = std::numeric_limits<uint32_t>::max();

// The lifetime of an allocation, as indexes of Schedule::requests().
struct AllocationSpan {
  uint32_t made = kNoRequest;   // kNoRequest: live before the first request
  uint32_t freed = kNoRequest;  // kNoRequest: never freed
  Bytes size;                   // requested
  uint32_t stack = 0;
  uint32_t stream = 0;
  // Whether it is made by a request, in the default pool, and used only on its own stream, so that
  // it can be freed and made elsewhere.
  bool is_movable = false;
};

// Returns the spans by AllocationId. O(requests).
std::vector<AllocationSpan> AllocationSpans(const Schedule& schedule);

// A list of changes that makes a schedule from another. An allocation is changed once: the first to
// claim it decides. Positions are indexes of the original requests: what is done "before request p"
// comes after everything that was there before it, in the order of the calls. O(1) each.
class ScheduleEdit {
 public:
  // Both must outlive the edit. The events of `schedule` must be kept, not expanded again.
  ScheduleEdit(const Schedule& schedule, absl::Span<const AllocationSpan> spans);

  // Claims an allocation for a change. Returns false if it is not movable or was claimed before.
  bool Claim(AllocationId id);
  bool IsClaimed(AllocationId id) const { return claimed_[id]; }

  // Change a claimed allocation: it is freed before request `position` (kNoRequest: never) instead
  // of its original position, or not made at all. `position` must be after the request that makes
  // it.
  void FreeBefore(AllocationId id, uint32_t position);
  void Drop(AllocationId id);
  // Makes an allocation like `model` with this size; returns its id. FreeNewBefore() frees it, or
  // nothing does.
  AllocationId MakeBefore(uint32_t position, AllocationId model, Bytes size);
  void FreeNewBefore(AllocationId id, uint32_t position);
  void EmptyCacheBefore(uint32_t position);
  // Leaves out a request that was refused when it was recorded.
  void Skip(uint32_t request) { is_gone_[request] = true; }
  // Ends the schedule after this request.
  void StopAfter(uint32_t request) { end_ = request + 1; }

  // Returns the number of changed allocations and requests.
  size_t changes() const { return changes_; }

  // Returns the changed schedule. O(requests + changes log changes).
  Schedule Apply() const;

 private:
  void Insert(uint32_t position, const Event& event) { inserted_.emplace_back(position, event); }

  const Schedule& schedule_;
  const absl::Span<const AllocationSpan> spans_;
  std::vector<bool> claimed_;  // by id
  std::vector<bool> is_gone_;  // by request
  std::vector<std::pair<uint32_t, Event>> inserted_;
  AllocationId next_id_;
  uint32_t end_;
  size_t changes_ = 0;
};

}  // namespace memreplay
