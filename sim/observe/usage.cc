#include "sim/observe/usage.h"

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

}  // namespace memreplay
