#include "sim/run/prepare_run.h"

#include <algorithm>
#include <optional>

#include "trace/value/trace.h"

namespace memreplay {

bool CompletesExplicitly(const Schedule& schedule) {
  return !schedule.is_program() || schedule.trace().completion == Completion::kExplicit;
}

CachingAllocatorOptions AllocatorOptionsFor(const Schedule& schedule) {
  CachingAllocatorOptions options;
  // PyTorch's order is that of its streams' hashes; those of a recording that
  // complete late are made up.
  if (!schedule.is_program()) options.stream_order = StreamOrder::kAscending;
  options.streams = schedule.trace().streams;
  options.pools = schedule.trace().pools;
  options.allocation_count = schedule.allocation_count();
  return options;
}

absl::StatusOr<MemoryState> RelocateSegments(const MemoryState& recorded, Device& device) {
  MemoryState relocated = recorded;
  for (SegmentInfo& segment : relocated) {
    if (segment.is_expandable) {
      return absl::UnimplementedError("the recording began with expandable segments");
    }
    const std::optional<Address> address = device.AllocateSegment(segment.total_size);
    if (!address.has_value()) {
      return absl::ResourceExhaustedError(
          "the device cannot hold the segments that the recording began with");
    }
    for (BlockInfo& block : segment.blocks)
      block.address = *address + (block.address - segment.address);
    segment.address = *address;
  }
  std::sort(relocated.begin(), relocated.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  return relocated;
}

absl::Status AllocateStart(const Schedule& schedule, Allocator& allocator, Observer& observer) {
  for (const StartAllocation& start : schedule.start_allocations()) {
    Event request;
    request.kind = EventKind::kAlloc;
    request.id = start.id;
    request.size = start.requested_size;
    request.stream = start.stream;
    request.text_or_stack = start.stack;
    absl::Status applied = allocator.Apply(request, observer);
    if (applied.ok() && start.state == BlockState::kPendingFree) {
      request.kind = EventKind::kRecordStream;
      request.stream = start.pending_stream;
      applied = allocator.Apply(request, observer);
      request.kind = EventKind::kFree;
      request.stream = start.stream;
      if (applied.ok()) applied = allocator.Apply(request, observer);
    }
    if (!applied.ok()) return applied;
  }
  return absl::OkStatus();
}

}  // namespace memreplay
