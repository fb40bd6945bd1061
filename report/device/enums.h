// Converts enums of the simulator to those of the schema.
#pragma once

#include "proto/report.pb.h"
#include "sim/oom/oom_analysis.h"
#include "trace/value/memory_state.h"

namespace memreplay {

constexpr proto::SegmentType SegmentTypeOf(bool is_large) {
  return is_large ? proto::SegmentType::large : proto::SegmentType::small;
}

constexpr proto::BlockState StateOf(BlockState state) {
  switch (state) {
    case BlockState::kAllocated: return proto::BlockState::active_allocated;
    case BlockState::kPendingFree: return proto::BlockState::active_pending_free;
    case BlockState::kInactive: break;
  }
  return proto::BlockState::inactive;
}

constexpr proto::Verdict VerdictOf(OomVerdict verdict) {
  switch (verdict) {
    case OomVerdict::kExceedsDevice: return proto::Verdict::too_large;
    case OomVerdict::kTrueShortage: return proto::Verdict::true_shortage;
    case OomVerdict::kFragmentation: return proto::Verdict::fragmentation;
    case OomVerdict::kLeak: return proto::Verdict::leak;
    case OomVerdict::kPendingFree: break;
  }
  return proto::Verdict::pending_free;
}

}  // namespace memreplay
