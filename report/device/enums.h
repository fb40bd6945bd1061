// Converts enums, pools and streams of the simulator to those of the schema.
#pragma once

#include "proto/report.pb.h"
#include "sim/oom/oom_analysis.h"
#include "trace/value/memory_state.h"

namespace memreplay {

constexpr proto::SegmentType SegmentTypeOf(bool is_large) {
  return is_large ? proto::SegmentType::large : proto::SegmentType::small;
}

// Says which pool a row is about, and of which kind and stream its memory is. `Row` is a message
// with these fields.
template <typename Row>
void SetPool(const PoolId& pool, Row* row) {
  row->add_segment_pool_id(static_cast<int64_t>(pool.first));
  row->add_segment_pool_id(static_cast<int64_t>(pool.second));
}
template <typename Row>
void SetPlace(const PoolId& pool, bool is_large, StreamHandle stream, Row* row) {
  SetPool(pool, row);
  row->set_segment_type(SegmentTypeOf(is_large));
  row->set_stream(static_cast<int64_t>(stream.value()));
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
