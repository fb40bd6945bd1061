#include "trace/value/event.h"

namespace memreplay {

std::string_view EventKindName(EventKind kind) {
  switch (kind) {
    case EventKind::kAlloc: return "alloc";
    case EventKind::kFree: return "free_requested";
    case EventKind::kRecordStream: return "record_stream";
    case EventKind::kStreamDone: return "stream_done";
    case EventKind::kEmptyCache: return "empty_cache";
    case EventKind::kMark: return "mark";
    case EventKind::kSettings: return "settings";
    case EventKind::kFraction: return "memory_fraction";
    case EventKind::kFailNext: return "fail_next";
    case EventKind::kPoolCreate: return "pool_create";
    case EventKind::kPoolForget: return "pool_forget";
    case EventKind::kPoolBegin: return "pool_begin";
    case EventKind::kPoolEnd: return "pool_end";
    case EventKind::kPoolRelease: return "pool_release";
    case EventKind::kResetPeak: return "reset_peak";
    case EventKind::kResetAccumulated: return "reset_accumulated";
    case EventKind::kOutsideAlloc: return "outside_alloc";
    case EventKind::kOutsideFree: return "outside_free";
    case EventKind::kFreeCompleted: return "free_completed";
    case EventKind::kSegmentAlloc: return "segment_alloc";
    case EventKind::kSegmentFree: return "segment_free";
    case EventKind::kSegmentMap: return "segment_map";
    case EventKind::kSegmentUnmap: return "segment_unmap";
    case EventKind::kOom: return "oom";
    case EventKind::kSnapshot: return "snapshot";
  }
  return "unknown";
}

std::optional<EventKind> EventKindFromName(std::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::kSnapshot); ++kind) {
    if (name == EventKindName(static_cast<EventKind>(kind))) return static_cast<EventKind>(kind);
  }
  return std::nullopt;
}

}  // namespace memreplay
