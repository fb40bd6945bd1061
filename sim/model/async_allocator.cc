#include "sim/model/async_allocator.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
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

}  // namespace memreplay
