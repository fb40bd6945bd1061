#include "sim/model/async_allocator.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "trace/value/check.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::Status AsyncAllocator::Apply(const Event& request, Observer& out) {
  switch (request.kind) {
    case EventKind::kAlloc:  // size 0 gets a null pointer
      if (request.size > Bytes(0)) Alloc(request, out);
      return absl::OkStatus();
    case EventKind::kFree: Free(request, out); return absl::OkStatus();
    default: break;
  }
  out.OnEvent(request);
  switch (request.kind) {
    case EventKind::kRecordStream: RecordStream(request); break;
    case EventKind::kEmptyCache: EmptyCache(request, out); break;
    case EventKind::kStreamDone: device_.StreamDone(request.stream); break;
    case EventKind::kFailNext: device_.FailNext(request.fail_count()); break;
    case EventKind::kResetPeak: stats_.ResetPeak(); break;
    case EventKind::kResetAccumulated: stats_.ResetAccumulated(); break;
    case EventKind::kOutsideAlloc: device_.TakeOutside(request.size); break;
    case EventKind::kOutsideFree: device_.ReturnOutside(request.size); break;
    default: break;
  }
  return absl::OkStatus();
}

absl::Status AsyncAllocator::ApplySettings(std::string_view conf) {
  if (absl::StrContains(ToAbsl(conf), "backend:native")) {
    return absl::FailedPreconditionError("the backend cannot be changed once it is loaded");
  }
  return absl::OkStatus();
}

absl::Status AsyncAllocator::SetMemoryFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(StrCat("memory fraction: expected 0 to 1, found ", fraction));
  }
  limit_ =
      Bytes(static_cast<uint64_t>(fraction * static_cast<double>(device_.TotalMemory().value())));
  return absl::OkStatus();
}

void AsyncAllocator::EmitOom(const Event& request, Observer& out) {
  Event oom = request;
  oom.set_oom(device_.FreeMemory());
  out.OnEvent(oom);
  ++ooms_;
}

namespace {

constexpr Bytes kAlignment{512};

}  // namespace

CudaMallocAsyncAllocator::CudaMallocAsyncAllocator(Device& device)
    : AsyncAllocator(device), pool_range_(RoundUp(device.TotalMemory(), kPoolStep) + kPoolStep) {
  const std::optional<Address> pool = device_.ReserveRange(pool_range_);
  if (!pool.has_value()) pool_range_ = Bytes();  // every request runs out of memory
  next_ = pool_ = pool.value_or(Address());
}

CudaMallocAsyncAllocator::~CudaMallocAsyncAllocator() {
  if (reserved_ > Bytes(0)) device_.UnmapPages(pool_, reserved_, kPoolStep);
  if (pool_range_ > Bytes(0)) device_.ReleaseRange(pool_, pool_range_);
}

void CudaMallocAsyncAllocator::Alloc(const Event& request, Observer& out) {
  Event event = request;
  const Bytes wanted = RoundUp(used_ + request.size, kPoolStep);
  const bool over_limit = limit_.has_value() && used_ + request.size > *limit_;
  const Bytes growth = wanted > reserved_ ? wanted - reserved_ : Bytes(0);
  const bool grows = growth > Bytes(0);
  if (over_limit || wanted > pool_range_ ||
      (grows && !device_.MapPages(pool_ + reserved_, growth, kPoolStep))) {
    EmitOom(request, out);
    return;
  }
  if (grows) {
    const Address end = pool_ + reserved_;
    reserved_ = wanted;
    out.OnEvent({.kind = EventKind::kSegmentMap,
                 .address = end,
                 .size = growth,
                 .block_size = growth,
                 .stream = request.stream,
                 .text_or_stack = request.text_or_stack});
    stats_.reserved_bytes.all.Increase(growth.signed_value());
  }
  used_ += request.size;
  event.address = next_;
  event.block_size = request.size;
  next_ = next_ + RoundUp(request.size, kAlignment);
  if (request.id >= live_.size()) live_.resize(request.id + 1);
  live_[request.id] = event;
  out.OnEvent(event);
  stats_.allocated_bytes.all.Increase(request.size.signed_value());
  stats_.active_bytes.all.Increase(request.size.signed_value());
}

void CudaMallocAsyncAllocator::Free(const Event& request, Observer& out) {
  if (request.id >= live_.size() || live_[request.id].size == Bytes(0)) return;
  Event event = live_[request.id];
  live_[request.id] = Event();
  event.text_or_stack = request.text_or_stack;
  event.kind = EventKind::kFree;
  out.OnEvent(event);
  event.kind = EventKind::kFreeCompleted;
  out.OnEvent(event);
  used_ -= event.size;
  stats_.allocated_bytes.all.Decrease(event.size.signed_value());
  stats_.active_bytes.all.Decrease(event.size.signed_value());
}

void CudaMallocAsyncAllocator::EmptyCache(const Event& request, Observer& out) {
  const Bytes kept = RoundUp(used_, kPoolStep);
  if (kept >= reserved_) return;
  const Bytes returned = reserved_ - kept;
  device_.UnmapPages(pool_ + kept, returned, kPoolStep);
  reserved_ = kept;
  out.OnEvent({.kind = EventKind::kSegmentUnmap,
               .address = pool_ + kept,
               .size = returned,
               .block_size = returned,
               .text_or_stack = request.text_or_stack});
  stats_.reserved_bytes.all.Decrease(returned.signed_value());
}

void CudaMallocAsyncAllocator::CheckInvariants() const {
  Bytes sum;
  for (const Event& alloc : live_) sum += alloc.size;
  MEMREPLAY_CHECK(sum == used_, "sizes of live allocations do not add up");
  MEMREPLAY_CHECK(used_ <= reserved_, "more is used than the pool holds");
}

}  // namespace memreplay
