#include "sim/observe/usage.h"

#include <algorithm>

namespace memreplay {

std::string_view UsageName(UsageKind kind) {
  switch (kind) {
    case UsageKind::kAllocated: return "allocated_bytes";
    case UsageKind::kActive: return "active_bytes";
    case UsageKind::kReserved: return "reserved_bytes";
    case UsageKind::kRequested: return "requested_bytes";
  }
  return "";
}

Usage UsageOf(const MemoryState& state) {
  Usage usage;
  for (const SegmentInfo& segment : state) {
    usage[UsageKind::kReserved] += segment.total_size;
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      if (block.state == BlockState::kAllocated) usage[UsageKind::kAllocated] += block.size;
      usage[UsageKind::kActive] += block.size;
      usage[UsageKind::kRequested] += block.requested_size;
    }
  }
  return usage;
}

UsageObserver::UsageObserver(const Usage& start) : current_(start), peak_(start) {
  peak_event_.fill(kAtStart);
}

void UsageObserver::OnStart(const MemoryState& state, const Allocator& /*allocator*/) {
  const Usage laid_down = UsageOf(state);
  Usage now = current_;
  for (size_t kind = 0; kind < kUsageKinds; ++kind) now.bytes[kind] += laid_down.bytes[kind];
  *this = UsageObserver(now);
}

void MomentsObserver::OnStart(const MemoryState& /*state*/, const Allocator& /*allocator*/) {
  peak_ = usage_.peak();
  rises_ = usage_.rises();
  moments_.at_peak = {.usage = usage_.current()};
  moments_.peak_request.fill(kBeforeFirstRequest);
}

void MomentsObserver::Look(bool is_fullest) {
  const Usage& now = usage_.current();
  if (is_fullest) {
    moments_.at_peak = {.request = request_, .event = usage_.events() - 1, .usage = now};
  }
  const Usage& peak = usage_.peak();
  if (usage_.rises() == rises_) return;
  rises_ = usage_.rises();
  if (peak.reserved() > peak_.reserved()) {
    const Bytes avoidable = std::min(peak.reserved() - peak_.reserved(), unused_before_);
    if (avoidable >= most_avoidable_) {
      most_avoidable_ = avoidable;
      moments_.cause_event = usage_.events() - 1;
    }
  }
  for (size_t kind = 0; kind < kUsageKinds; ++kind) {
    if (peak.bytes[kind] > peak_.bytes[kind]) moments_.peak_request[kind] = request_;
  }
  peak_ = peak;
}

}  // namespace memreplay
