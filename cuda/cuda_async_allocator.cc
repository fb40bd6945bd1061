#include "cuda/cuda_async_allocator.h"

#include <algorithm>

#include "absl/status/status.h"
#include "trace/value/check.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr cuuint64_t kKeepEverything = ~cuuint64_t{0};
// An additional stream, not one of the trace, that only waits for others.
constexpr uint32_t kUnifyingStream = 1u << 16;

}  // namespace

CudaAsyncAllocator::CudaAsyncAllocator(CudaDevice& device, CUmemoryPool pool)
    : AsyncAllocator(device), cuda_device_(device), context_(device.context()), pool_(pool) {}

absl::StatusOr<std::unique_ptr<CudaAsyncAllocator>> CudaAsyncAllocator::Create(CudaDevice& device) {
  CudaContext& context = device.context();
  const CudaCard& card = context.card();
  if (!card.has_memory_pools) {
    return absl::FailedPreconditionError(StrCat("GPU ", card.ordinal, " (", card.name,
                                                ") has no stream-ordered memory pools "
                                                "(cudaMallocAsync)"));
  }
  CUmemoryPool pool = nullptr;
  if (!context.Succeeded(context.api().cuDeviceGetDefaultMemPool(&pool, context.device()),
                         "cuDeviceGetDefaultMemPool")) {
    return context.status();
  }
  std::unique_ptr<CudaAsyncAllocator> allocator(new CudaAsyncAllocator(device, pool));
  RETURN_IF_ERROR(allocator->Prepare());
  return allocator;
}

absl::Status CudaAsyncAllocator::Prepare() {
  const CudaEntryPoints& api = context_.api();
  cuuint64_t threshold = 0;
  if (!context_.Succeeded(
          api.cuMemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
          DriverCall::kPoolAttribute)) {
    return context_.status();
  }
  cuuint64_t keep = kKeepEverything;
  if (!context_.Succeeded(
          api.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
          "cuMemPoolSetAttribute", "of the release threshold")) {
    return context_.status();
  }
  old_threshold_ = threshold;
  for (const CUmemPool_attribute high :
       {CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH}) {
    cuuint64_t zero = 0;
    if (!context_.Succeeded(api.cuMemPoolSetAttribute(pool_, high, &zero), "cuMemPoolSetAttribute",
                            "of a high-water mark")) {
      return context_.status();
    }
  }
  reserved_ = Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  used_ = Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  return context_.status();
}

CudaAsyncAllocator::~CudaAsyncAllocator() {
  const CudaEntryPoints& api = context_.api();
  for (const auto& [id, live] : live_) {  // in any order
    // Tries again after a failure, since nothing may stay allocated.
    if (!FreeOnDriver(live)) FreeOnDriver(live);
  }
  api.cuCtxSynchronize();
  if (old_threshold_.has_value()) {
    api.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &*old_threshold_);
  }
  if (api.cuMemPoolTrimTo(pool_, 0) != CUDA_SUCCESS) api.cuMemPoolTrimTo(pool_, 0);
  cuda_device_.CountPool(Bytes(0));
}

void CudaAsyncAllocator::RecordStream(const Event& request) {
  const auto live = live_.find(request.id);
  if (live == live_.end() || request.stream == live->second.alloc.stream) return;
  auto& others = live->second.other_streams;
  if (std::find(others.begin(), others.end(), request.stream) == others.end()) {
    others.push_back(request.stream);
  }
}

void CudaAsyncAllocator::Alloc(const Event& request, Observer& out) {
  Event event = request;
  const Bytes wanted = RoundUp(used_ + request.size, kPoolStep);
  const bool grows = wanted > reserved_;
  bool granted = !limit_.has_value() || requested_ + request.size <= *limit_;
  if (granted && (grows || !context_.status().ok())) {
    granted = cuda_device_.Admit(grows ? wanted - reserved_ : Bytes(0));
  }
  CUdeviceptr address = 0;
  if (granted) {
    CUstream const stream = context_.Stream(request.stream);
    if (stream == nullptr) {
      granted = false;
    } else {
      const CUresult result =
          context_.Call(DriverCall::kMemAllocAsync, request.size, context_.api().cuMemAllocAsync,
                        &address, request.size.value(), stream);
      granted = cuda_device_.Granted(result, DriverCall::kMemAllocAsync, Address(), request.size);
    }
  }
  if (!granted) {
    EmitOom(request, out);
    return;
  }
  event.address = Address(address);
  event.block_size = request.size;
  MEMREPLAY_CHECK(!live_.contains(request.id), "allocation with the id of a live one");
  live_[request.id].alloc = event;
  requested_ += request.size;
  Observe(event, out);
  out.OnEvent(event);
}

bool CudaAsyncAllocator::FreeOnDriver(const Live& live) {
  const CudaEntryPoints& api = context_.api();
  CUstream stream = context_.Stream(live.alloc.stream);
  if (!live.other_streams.empty()) {
    CUstream const unifying = context_.Stream(kUnifyingStream);
    absl::InlinedVector<uint32_t, 4> users(live.other_streams.begin(), live.other_streams.end());
    users.push_back(live.alloc.stream);
    for (const uint32_t user : users) {
      CUevent event = nullptr;
      if (!context_.Do(DriverCall::kEventCreate, Bytes(0), "", api.cuEventCreate, &event,
                       CU_EVENT_DISABLE_TIMING)) {
        continue;
      }
      context_.Do(DriverCall::kEventRecord, Bytes(0), "", api.cuEventRecord, event,
                  context_.Stream(user));
      context_.Do(DriverCall::kStreamWaitEvent, Bytes(0), "", api.cuStreamWaitEvent, unifying,
                  event, 0);
      api.cuEventDestroy(event);  // the driver keeps it until the wait is over
    }
    stream = unifying;
  }
  const Bytes size = live.alloc.size;
  const Address address = live.alloc.address;
  return context_.Do(DriverCall::kMemFreeAsync, size, OfBytesAt(size, address), api.cuMemFreeAsync,
                     address.value(), stream);
}

void CudaAsyncAllocator::Free(const Event& request, Observer& out) {
  const auto found = live_.find(request.id);
  if (found == live_.end()) return;
  Event event = found->second.alloc;
  event.text_or_stack = request.text_or_stack;
  event.kind = EventKind::kFree;
  out.OnEvent(event);
  if (!FreeOnDriver(found->second)) return;  // stays live; the destructor tries again
  live_.erase(found);
  requested_ -= event.size;
  event.kind = EventKind::kFreeCompleted;
  out.OnEvent(event);
  Observe(event, out);
}

void CudaAsyncAllocator::EmptyCache(const Event& request, Observer& out) {
  const CudaEntryPoints& api = context_.api();
  context_.Do(DriverCall::kContextSynchronize, Bytes(0), "", api.cuCtxSynchronize);
  context_.Do(DriverCall::kPoolTrim, Bytes(0), "", api.cuMemPoolTrimTo, pool_, size_t{0});
  Observe(request, out);
}

Bytes CudaAsyncAllocator::Attribute(CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  const bool is_known =
      context_.Do(DriverCall::kPoolAttribute, Bytes(0), "", context_.api().cuMemPoolGetAttribute,
                  pool_, attribute, static_cast<void*>(&value));
  return is_known ? Bytes(value) : Bytes(0);
}

Bytes CudaAsyncAllocator::PeakUsed() { return Attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH); }
Bytes CudaAsyncAllocator::PeakReserved() { return Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH); }

void CudaAsyncAllocator::Observe(const Event& cause, Observer& out) {
  const Bytes used = Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  const Bytes reserved = Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  const int64_t more_used = used.signed_value() - used_.signed_value();
  const int64_t more_reserved = reserved.signed_value() - reserved_.signed_value();
  const auto change = [](Stat& stat, int64_t amount) {
    if (amount > 0) stat.Increase(amount);
    if (amount < 0) stat.Decrease(-amount);
  };
  change(stats_.allocated_bytes.all, more_used);
  change(stats_.active_bytes.all, more_used);
  change(stats_.reserved_bytes.all, more_reserved);
  if (more_reserved != 0) {
    Event event;
    event.kind = more_reserved > 0 ? EventKind::kSegmentMap : EventKind::kSegmentUnmap;
    event.address = Address(std::min(reserved, reserved_).value());
    event.size = event.block_size = Bytes(static_cast<uint64_t>(std::abs(more_reserved)));
    event.stream = cause.stream;
    event.text_or_stack = HasText(cause.kind) ? kNoStack : cause.text_or_stack;
    out.OnEvent(event);
  }
  used_ = used;
  reserved_ = reserved;
  cuda_device_.CountPool(reserved);
}

void CudaAsyncAllocator::CheckInvariants() const {
  Bytes sum;
  // In any order.
  for (const auto& [id, live] : live_) sum += live.alloc.size;
  // A block that the driver failed to free counts as live until the end.
  MEMREPLAY_CHECK(sum == requested_, "sizes of live allocations do not add up");
}

}  // namespace memreplay
