#include "sim/model/direct_allocator.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "trace/value/check.h"

namespace memreplay {
namespace {

bool IsLarge(Bytes size) { return size > MiB(1); }

void Count(const Event& event, int direction, MemoryStats* stats) {
  const bool large = IsLarge(event.size);
  const auto change = [&](StatArray& array, int64_t amount) {
    if (direction > 0) {
      array.Increase(large, amount);
    } else {
      array.Decrease(large, amount);
    }
  };
  const int64_t size = event.size.signed_value();
  for (StatArray* number : {&stats->allocation, &stats->active, &stats->segment})
    change(*number, 1);
  for (StatArray* bytes : {&stats->allocated_bytes, &stats->active_bytes, &stats->requested_bytes,
                           &stats->reserved_bytes}) {
    change(*bytes, size);
  }
}

}  // namespace

DirectAllocator::DirectAllocator(Device& device, DirectAllocatorOptions options)
    : device_(device), options_(std::move(options)) {}

absl::Status DirectAllocator::Apply(const Event& request, Observer& out) {
  switch (request.kind) {
    case EventKind::kAlloc: Alloc(request, out); return absl::OkStatus();
    case EventKind::kFree: Free(request, out); return absl::OkStatus();
    default: break;
  }
  out.OnEvent(request);
  switch (request.kind) {
    case EventKind::kStreamDone: device_.StreamDone(request.stream); break;
    case EventKind::kFailNext: device_.FailNext(request.fail_count()); break;
    case EventKind::kResetPeak: stats_.ResetPeak(); break;
    case EventKind::kOutsideAlloc: device_.TakeOutside(request.size); break;
    case EventKind::kOutsideFree: device_.ReturnOutside(request.size); break;
    default: break;
  }
  return absl::OkStatus();
}

void DirectAllocator::Alloc(const Event& request, Observer& out) {
  if (request.size == Bytes(0)) return;  // size 0 gets a null pointer
  std::optional<Address> address;
  if (!limit_.has_value() || total_ + request.size <= *limit_) {
    address = device_.AllocateSegment(request.size);
  }
  Event event = request;
  if (!address.has_value()) {
    event.set_oom(device_.FreeMemory());
    out.OnEvent(event);
    ++stats_.num_ooms;
    return;
  }
  if (request.id >= live_.size()) live_.resize(request.id + 1);
  Live& live = live_[request.id];
  MEMREPLAY_CHECK(live.address.is_null(), "allocation with the id of a live one");
  live = {.address = *address,
          .size = request.size,
          .stream = request.stream,
          .stack = request.text_or_stack,
          .pool = request.pool};
  total_ += request.size;
  event.address = *address;
  event.block_size = request.size;
  event.kind = EventKind::kSegmentAlloc;
  event.id = kNoAllocation;
  out.OnEvent(event);
  event.kind = EventKind::kAlloc;
  event.id = request.id;
  out.OnEvent(event);
  Count(event, +1, &stats_);
  ++stats_.num_device_alloc;
}

void DirectAllocator::Free(const Event& request, Observer& out) {
  if (request.id >= live_.size() || live_[request.id].address.is_null()) return;
  Live& live = live_[request.id];
  Event event;
  event.id = request.id;
  event.address = live.address;
  event.size = live.size;
  event.block_size = live.size;
  event.stream = live.stream;
  event.pool = live.pool;
  event.text_or_stack = request.text_or_stack;
  live = Live{};
  for (const EventKind kind :
       {EventKind::kFree, EventKind::kFreeCompleted, EventKind::kSegmentFree}) {
    event.kind = kind;
    if (kind == EventKind::kSegmentFree) event.id = kNoAllocation;
    out.OnEvent(event);
  }
  device_.FreeSegment(event.address, event.size);
  total_ -= event.size;
  Count(event, -1, &stats_);
  ++stats_.num_device_free;
}

absl::Status DirectAllocator::SetMemoryFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory fraction: expected 0 to 1, found ", fraction));
  }
  limit_.reset();
  if (fraction < 1) {
    limit_ =
        Bytes(static_cast<uint64_t>(fraction * static_cast<double>(device_.TotalMemory().value())));
  }
  return absl::OkStatus();
}

MemoryState DirectAllocator::Segments() const {
  MemoryState segments;
  for (AllocationId id = 0; id < live_.size(); ++id) {
    const Live& live = live_[id];
    if (live.address.is_null()) continue;
    SegmentInfo& segment = segments.emplace_back();
    segment.address = live.address;
    segment.total_size = live.size;
    segment.stream = live.stream < options_.streams.size() ? options_.streams[live.stream]
                                                           : StreamHandle(live.stream);
    if (live.pool < options_.pools.size()) segment.pool_id = options_.pools[live.pool];
    segment.is_large = IsLarge(live.size);
    segment.stack = live.stack;
    segment.blocks.push_back({.address = live.address,
                              .size = live.size,
                              .requested_size = live.size,
                              .state = BlockState::kAllocated,
                              .id = id,
                              .stack = live.stack});
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  return segments;
}

void DirectAllocator::CheckInvariants() const {
  Bytes sum;
  int64_t count = 0;
  const MemoryState segments = Segments();
  for (size_t i = 0; i < segments.size(); ++i) {
    sum += segments[i].total_size;
    ++count;
    MEMREPLAY_CHECK(
        i == 0 || segments[i - 1].address + segments[i - 1].total_size <= segments[i].address,
        "two live segments overlap");
  }
  MEMREPLAY_CHECK(sum == total_, "sizes of live segments do not add up");
  MEMREPLAY_CHECK(stats_.reserved_bytes.all.current() == total_.signed_value() &&
                      stats_.allocation.all.current() == count,
                  "statistics differ from the live segments");
}

}  // namespace memreplay
