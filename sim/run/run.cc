#include "sim/run/run.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::Status ApplyFraction(std::string_view text, Allocator& allocator) {
  double fraction = 0;
  if (!absl::SimpleAtod(ToAbsl(text), &fraction)) {
    return absl::InvalidArgumentError(
        StrCat("memory fraction: expected a number, found '", text, "'"));
  }
  return allocator.SetMemoryFraction(fraction);
}

absl::Status Apply(const Event& request, const StringTable& strings, Allocator& allocator,
                   Observer& observer) {
  switch (request.kind) {
    case EventKind::kMark: observer.OnEvent(request); return absl::OkStatus();
    case EventKind::kSettings:
      observer.OnEvent(request);
      return allocator.ApplySettings(strings[request.text_or_stack]);
    case EventKind::kFraction:
      observer.OnEvent(request);
      return ApplyFraction(strings[request.text_or_stack], allocator);
    default: return allocator.Apply(request, observer);
  }
}

}  // namespace

RunResult Run(const Schedule& schedule, Allocator& allocator, Observer& observer,
              const RunOptions& options) {
  RunResult result;
  const StringTable& strings = schedule.trace().strings;
  const int64_t ooms_before = allocator.ooms();
  const RequestView requests = schedule.requests();
  const Observer::Wants wants = observer.wants();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (options.intervention != nullptr) [[unlikely]] {
      const Intervention::Next next = options.intervention->BeforeRequest(i, allocator, observer);
      if (next == Intervention::Next::kStop) break;
      if (next == Intervention::Next::kSkip) continue;
    }
    if (options.device != nullptr) options.device->OnRequest(i);
    if (wants.requests) observer.OnRequest(i);
    const absl::Status status = Apply(requests[i], strings, allocator, observer);
    if (!status.ok()) [[unlikely]] {
      const absl::string_view message = status.message();
      result.failures.push_back({.request = i,
                                 .message = std::string(message.data(), message.size()),
                                 .is_out_of_memory = absl::IsResourceExhausted(status)});
    }
    if (options.check_invariants) allocator.CheckInvariants();
  }
  result.ooms = static_cast<uint64_t>(allocator.ooms() - ooms_before);
  return result;
}

void ObserveRecorded(const Schedule& schedule, Observer& observer) {
  for (const Event& event : schedule.recorded()) observer.OnEvent(event);
}

}  // namespace memreplay
