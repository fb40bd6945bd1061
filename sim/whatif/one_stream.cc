#include "sim/whatif/one_stream.h"

#include <optional>

namespace memreplay {

Intervention::Next OneStream::BeforeRequest(size_t request, Allocator& allocator,
                                            Observer& observer) {
  Event asked = schedule_.requests()[request];
  if (asked.kind == EventKind::kRecordStream || asked.kind == EventKind::kStreamDone) {
    return Next::kSkip;
  }
  if (asked.stream == 0 || (asked.kind != EventKind::kAlloc && asked.kind != EventKind::kFree)) {
    return Next::kApply;
  }
  asked.stream = 0;
  allocator.Apply(asked, observer).IgnoreError();
  return Next::kSkip;
}

bool AllocatesOnSeveralStreams(const Schedule& schedule) {
  if (schedule.stream_count() < 2) return false;
  std::optional<uint32_t> first;
  for (const Event& request : schedule.requests()) {
    if (request.kind != EventKind::kAlloc) continue;
    if (!first.has_value()) first = request.stream;
    if (request.stream != *first) return true;
  }
  return false;
}

}  // namespace memreplay
