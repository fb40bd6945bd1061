#include "report/run/run_walk.h"

#include <algorithm>

namespace memreplay {

RunWalk::RunWalk(const Schedule& schedule, const RunLog& log)
    : log_(log),
      times_(schedule.device_trace().time_us),
      has_times_(!schedule.is_program() && !times_.empty()),
      allocations_(log.start_allocations) {
  for (size_t i = 0; i < log.start_allocations; ++i) {
    const RunLog::Allocation& allocation = log.allocations[i];
    usage_[UsageKind::kActive] += allocation.block_size;
    usage_[UsageKind::kRequested] += allocation.requested_size;
    if (!allocation.starts_pending) usage_[UsageKind::kAllocated] += allocation.block_size;
  }
  for (size_t i = 0; i < log.start_ranges; ++i) {
    usage_[UsageKind::kReserved] += log.ranges[i].size;
  }
}

bool RunWalk::Next() {
  if (moment_ == log_.kinds.size()) return false;
  const EventKind event = log_.kinds[moment_];
  const uint32_t position = log_.positions[moment_];
  if (!has_times_) {
    time_ = position;
  } else if (position < times_.size()) {
    time_ = std::max(time_, times_[position] - times_.front());
  }
  ++moment_;
  allocation_ = RunLog::kNever;
  other_ = nullptr;
  switch (event) {
    case EventKind::kAlloc: {
      allocation_ = static_cast<uint32_t>(allocations_++);
      const RunLog::Allocation& allocation = log_.allocations[allocation_];
      usage_[UsageKind::kAllocated] += allocation.block_size;
      usage_[UsageKind::kActive] += allocation.block_size;
      usage_[UsageKind::kRequested] += allocation.requested_size;
      return true;
    }
    case EventKind::kFree:
      allocation_ = log_.freed[frees_++];
      usage_[UsageKind::kAllocated] -= log_.allocations[allocation_].block_size;
      return true;
    case EventKind::kFreeCompleted:
      allocation_ = log_.freed[frees_++];
      usage_[UsageKind::kActive] -= log_.allocations[allocation_].block_size;
      usage_[UsageKind::kRequested] -= log_.allocations[allocation_].requested_size;
      return true;
    default: break;
  }
  other_ = &log_.others[others_++];
  switch (event) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap: usage_[UsageKind::kReserved] += other_->what.size; break;
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap: usage_[UsageKind::kReserved] -= other_->what.size; break;
    default: break;
  }
  return true;
}

}  // namespace memreplay
