#include "sim/category/server_budget.h"

#include <algorithm>
#include <vector>

#include "sim/category/stack_roles.h"
#include "trace/value/event.h"

namespace memreplay {
namespace {

// What is live of a recording after each event.
class ServerWalk {
 public:
  explicit ServerWalk(const Schedule& schedule)
      : roles_(StackRoles(schedule.trace())), taken_(schedule.allocation_count()) {
    for (const StartAllocation& start : schedule.start_allocations()) {
      if (start.state == BlockState::kAllocated) {
        Take(start.id, start.requested_size, start.stack);
      }
    }
  }

  void OnEvent(const Event& event) {
    switch (event.kind) {
      case EventKind::kAlloc:
        if (event.address != Address()) Take(event.id, event.size, event.text_or_stack);
        break;
      case EventKind::kFree: Leave(event.id); break;
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentMap:
        if (event.pool != 0) pools_ += event.size;
        break;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap:
        if (event.pool != 0) pools_ -= std::min(pools_, event.size);
        break;
      default: break;
    }
    if (budget_.tensors > 0) budget_.graphs = std::max(budget_.graphs, pools_);
  }

  std::optional<ServerBudget> budget() const {
    return budget_.tensors > 0 ? std::optional(budget_) : std::nullopt;
  }

 private:
  struct Taken {
    Bytes size;
    bool is_cache = false;
  };

  void Take(AllocationId id, Bytes size, uint32_t stack) {
    if (id >= taken_.size()) return;
    const StackRole& role = roles_[stack];
    taken_[id] = {size, role.is_cache && role.caller == 0};
    if (!taken_[id].is_cache) {
      other_ += size;
      most_ = std::max(most_, other_);
      return;
    }
    if (tensors_ == 0) {
      before_ = other_;
      most_before_ = most_;
    }
    ++tensors_;
    cache_ += size;
    if (cache_ <= budget_.cache) return;
    budget_ = {.weights = before_,
               .profile = most_before_ - before_,
               .cache = cache_,
               .tensors = tensors_,
               .graphs = Bytes()};
  }

  void Leave(AllocationId id) {
    if (id >= taken_.size()) return;
    Taken& taken = taken_[id];
    if (taken.is_cache) {
      --tensors_;
      cache_ -= taken.size;
    } else {
      other_ -= taken.size;
    }
    taken = {};
  }

  std::vector<StackRole> roles_;
  std::vector<Taken> taken_;    // by id
  Bytes other_, most_;          // live, without caches
  Bytes before_, most_before_;  // the same when the first of the live caches was made
  Bytes cache_;                 // live
  int64_t tensors_ = 0;         // of the cache that are live
  Bytes pools_;                 // reserved by private pools
  ServerBudget budget_;
};

}  // namespace

std::optional<ServerBudget> FindServerBudget(const Schedule& schedule) {
  if (schedule.is_program()) return std::nullopt;
  ServerWalk walk(schedule);
  for (const Event& event : schedule.recorded()) walk.OnEvent(event);
  return walk.budget();
}

}  // namespace memreplay
