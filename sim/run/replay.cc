#include "sim/run/replay.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/model/async_allocator.h"
#include "sim/model/direct_allocator.h"
#include "trace/value/status_macros.h"
#include "trace/value/trace.h"

namespace memreplay {
namespace {

CachingAllocatorOptions OptionsFor(const ReplayPlan& plan) {
  const Schedule& schedule = *plan.schedule;
  CachingAllocatorOptions options;
  // PyTorch orders streams by their hashes, but the streams of late completions in a recording are
  // invented.
  if (!schedule.is_program()) options.stream_order = StreamOrder::kAscending;
  options.streams = schedule.trace().streams;
  options.pools = schedule.pools();
  options.pool_flags = schedule.pool_flags();
  options.allocation_count = schedule.allocation_count();
  options.tie_guide = plan.tie_guide;
  return options;
}

// An observer that passes on the events that allocate the start state again.
class StartEvents final : public Observer {
 public:
  explicit StartEvents(Observer& observer) : observer_(observer) {}
  void OnEvent(const Event& event) override { observer_.OnStartEvent(event); }

 private:
  Observer& observer_;
};

// Allocates what was live when the recording began, in the order of addresses.
absl::Status AllocateStart(const Schedule& schedule, Allocator& allocator, Observer& observer) {
  for (const StartAllocation& start : schedule.start_allocations()) {
    Event request = {.kind = EventKind::kAlloc,
                     .id = start.id,
                     .size = start.requested_size,
                     .stream = start.stream,
                     .text_or_stack = start.stack};
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

}  // namespace

bool CompletesExplicitly(const Schedule& schedule) {
  return !schedule.is_program() || schedule.trace().completion == Completion::kExplicit;
}

absl::StatusOr<MemoryState> RelocateSegments(const MemoryState& recorded, Device& device) {
  MemoryState relocated = recorded;
  std::vector<Piece> pieces;
  for (const SegmentInfo& segment : relocated) {
    if (segment.is_expandable) {
      return absl::UnimplementedError("the recording began with expandable segments");
    }
    pieces.push_back({segment.address, segment.total_size});
  }
  const std::optional<std::vector<Address>> addresses = device.AllocateStart(pieces);
  if (!addresses.has_value()) {
    return absl::ResourceExhaustedError(
        "the device cannot hold the segments that the recording began with");
  }
  for (size_t i = 0; i < relocated.size(); ++i) {
    SegmentInfo& segment = relocated[i];
    for (BlockInfo& block : segment.blocks) {
      block.address = (*addresses)[i] + (block.address - segment.address);
    }
    segment.address = (*addresses)[i];
  }
  std::sort(relocated.begin(), relocated.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  return relocated;
}

absl::StatusOr<ReplayResult> ReplayBy(
    absl::FunctionRef<RunResult(CachingAllocator&, const RunOptions&)> run, const ReplayPlan& plan,
    Device& device, Observer& observer, const RunOptions& options) {
  const Schedule& schedule = *plan.schedule;
  CachingAllocator* caching = nullptr;
  std::unique_ptr<Allocator> made;
  if (plan.backend == RunBackend::kNative) {
    auto native =
        std::make_unique<CachingAllocator>(*plan.profile, *plan.config, device, OptionsFor(plan));
    caching = native.get();
    made = std::move(native);
  } else if (plan.backend == RunBackend::kDirect) {
    made = std::make_unique<DirectAllocator>(
        device, DirectAllocatorOptions{schedule.trace().streams, schedule.pools()});
  } else if (plan.async == nullptr) {
    made = std::make_unique<CudaMallocAsyncAllocator>(device);
  }
  Allocator& allocator = made != nullptr ? *made : *plan.async;
  if (plan.fraction.has_value()) {
    RETURN_IF_ERROR(allocator.SetMemoryFraction(*plan.fraction));
  }

  MemoryState laid_down;
  if (plan.start.policy == StartPolicy::kFresh || caching == nullptr) {
    StartEvents events(observer);
    RETURN_IF_ERROR(AllocateStart(schedule, allocator, events));
  } else if (plan.start.segments != nullptr && !plan.start.segments->empty()) {
    laid_down = *plan.start.segments;
    if (!plan.start.is_held) {
      ASSIGN_OR_RETURN(laid_down, RelocateSegments(laid_down, device));
    }
    caching->Restore(laid_down, plan.start.hints != nullptr ? *plan.start.hints : RestoreHints());
  }
  const auto ooms_at_start = static_cast<uint64_t>(allocator.ooms());
  observer.OnStart(laid_down, allocator);

  RunOptions run_options = options;
  run_options.device = &device;
  run_options.conf = plan.config->conf;
  ReplayResult result;
  result.run = caching != nullptr ? run(*caching, run_options)
                                  : Run(schedule, allocator, observer, run_options);
  result.run.ooms += ooms_at_start;
  observer.OnEnd();
  result.statistics = allocator.statistics();
  result.segments = allocator.Segments();
  result.rules = allocator.rule_counts();
  return result;
}

}  // namespace memreplay
