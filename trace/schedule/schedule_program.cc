// Programs: the requests are the events, with dense ids instead of handles.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "trace/schedule/schedule_builder.h"

namespace memreplay {
namespace {

enum class HandleUse : uint8_t { kNone, kBegins, kEnds, kUses };

HandleUse UseOfHandle(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc: return HandleUse::kBegins;
    case EventKind::kFree: return HandleUse::kEnds;
    case EventKind::kRecordStream: return HandleUse::kUses;
    case EventKind::kMark:
      return event.is_mark(MarkKind::kRetag) ? HandleUse::kUses : HandleUse::kNone;
    default: return HandleUse::kNone;
  }
}

std::string HandleText(const Event& event) {
  return absl::StrCat("handle ", event.address.value());
}

// Memory outside the allocator, identified by its handle or, without one, its name. Sizes of the
// same name add up; a release without a size releases it all.
class OutsideMemory {
 public:
  explicit OutsideMemory(const Trace& trace) : trace_(trace) {}

  // Returns false for a release of memory that was never taken.
  bool Resolve(Event& request) {
    if (request.kind == EventKind::kOutsideAlloc) {
      taken_[KeyOf(request.address, request.text_or_stack)] += request.size;
      return true;
    }
    uint32_t name = kNoText;
    const auto frames = trace_.stacks[request.text_or_stack];
    if (!frames.empty()) name = trace_.stacks.frame(frames[0]).name;
    const auto it = taken_.find(KeyOf(request.address, name));
    if (it == taken_.end()) return false;
    if (request.size == Bytes(0) || request.size > it->second) request.size = it->second;
    it->second -= request.size;
    if (it->second == Bytes(0)) taken_.erase(it);
    return true;
  }

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // handle, or 0 and a text
  static Key KeyOf(Address handle, uint32_t name) {
    return {handle.value(), handle.is_null() ? name : kNoText};
  }

  const Trace& trace_;
  absl::flat_hash_map<Key, Bytes> taken_;
};

}  // namespace

void ScheduleBuilder::TakeExpanded(const EventSource& source) {
  for (const EventSource::Leak& leak : source.leaks()) {
    schedule_.diagnostics_.Add(DiagnosticKind::kLeak, leak.event,
                               absl::StrCat("handle ", leak.handle));
  }
  schedule_.allocation_count_ = source.allocation_count();
}

void ScheduleBuilder::BuildProgram() {
  Diagnostics& diagnostics = schedule_.diagnostics_;
  OutsideMemory outside(*schedule_.trace_);
  schedule_.request_from_.reserve(source_.events.size());
  for (uint32_t i = 0; i < source_.events.size(); ++i) {
    Event request = source_.events[i];
    if (!IsRequest(request.kind)) continue;  // effects result from the replay
    if (request.kind == EventKind::kOutsideAlloc || request.kind == EventKind::kOutsideFree) {
      if (!outside.Resolve(request)) {
        diagnostics.Add(DiagnosticKind::kFreeOfDeadHandle, i, HandleText(request));
        continue;
      }
      request.address = Address();
    }
    const HandleUse use = UseOfHandle(request);
    if (use != HandleUse::kNone) {
      const uint64_t handle = request.address.value();
      const auto it = live_.find(handle);
      if (use == HandleUse::kBegins) {
        request.id = next_id_++;
        if (it == live_.end()) {
          live_.emplace(handle, Live{request.id, i});
        } else {
          // The memory is requested; the handle's previous allocation stays live.
          diagnostics.Add(DiagnosticKind::kAllocOfLiveHandle, i, HandleText(request));
          diagnostics.Add(DiagnosticKind::kLeak, it->second.since, HandleText(request));
          it->second = Live{request.id, i};
        }
      } else if (it == live_.end()) {
        diagnostics.Add(DiagnosticKind::kFreeOfDeadHandle, i, HandleText(request));
        continue;
      } else {
        request.id = it->second.id;
        if (use == HandleUse::kEnds) live_.erase(it);
      }
      request.address = Address();
    }
    ids_[i] = request.id;
    AddRequest(request, i);
  }

  std::vector<std::pair<uint32_t, uint64_t>> leaks;  // alloc event, handle
  leaks.reserve(live_.size());
  // In any order.
  for (const auto& [handle, live] : live_) leaks.emplace_back(live.since, handle);
  std::sort(leaks.begin(), leaks.end());
  for (const auto& [since, handle] : leaks) {
    diagnostics.Add(DiagnosticKind::kLeak, since, absl::StrCat("handle ", handle));
  }
  schedule_.is_cold_ = true;
}

}  // namespace memreplay
