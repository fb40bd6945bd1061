#include "sim/observe/history.h"

namespace memreplay {

void HistoryObserver::OnRequest(size_t request) {
  if (clock_ == Clock::kRequests) position_ = EventOfRequest(schedule_, request);
}

void HistoryObserver::OnEvent(const Event& event) {
  if (clock_ == Clock::kEvents) position_ = traced_;
  traced_ += IsTraced(event.kind);
  usage_.OnEvent(event);
  timeline_.OnEvent(event);
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      segments_.push_back({position_, event.kind, event.size, kNoText});
      break;
    case EventKind::kOom: ooms_.push_back({position_, event.kind, event.size, kNoText}); break;
    case EventKind::kMark:
      if (event.is_mark(MarkKind::kPhase)) {
        phases_.push_back({position_, event.kind, Bytes(), event.text_or_stack});
      }
      break;
    default: break;
  }
}

}  // namespace memreplay
