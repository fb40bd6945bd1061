#include "sim/run/run.h"

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

}  // namespace

namespace run_internal {

absl::Status ApplyOther(const Event& request, const StringTable& strings, const RunOptions& options,
                        Allocator& allocator, Observer& observer) {
  switch (request.kind) {
    case EventKind::kMark: observer.OnEvent(request); return absl::OkStatus();
    case EventKind::kSettings:
      observer.OnEvent(request);
      return allocator.ApplySettings(request.restores_settings() ? options.conf
                                                                 : strings[request.text_or_stack]);
    case EventKind::kFraction:
      observer.OnEvent(request);
      return ApplyFraction(strings[request.text_or_stack], allocator);
    default: return allocator.Apply(request, observer);
  }
}

void Note(size_t request, const absl::Status& status, RunResult& result) {
  const absl::string_view message = status.message();
  result.failures.push_back({.request = request,
                             .message = std::string(message.data(), message.size()),
                             .is_out_of_memory = absl::IsResourceExhausted(status)});
}

}  // namespace run_internal

RunResult Run(const Schedule& schedule, Allocator& allocator, Observer& observer,
              const RunOptions& options) {
  return run_internal::Loop(schedule, allocator, observer, options);
}

}  // namespace memreplay
