// Reports what a trace holds, without replaying it.
#pragma once

#include <cstddef>

#include "proto/report.pb.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// What a file says about one device before anything is simulated.
struct DeviceContents {
  proto::Inventory inventory;
  // Reserved memory is from the segment events, requested memory (of active blocks, as
  // torch.cuda.memory_stats() counts it) from the allocations.
  proto::RecordedPeaks peaks;
};

// Describes one device (a position in trace.devices). What was live when recording began is the
// state at the end with every event undone; without a state at the end it is the minimum that the
// events need. O(events + blocks), without hashing for recorded traces.
DeviceContents DescribeContents(const Trace& trace, size_t device_index);
inline DeviceContents DescribeContents(const Schedule& schedule) {
  return DescribeContents(schedule.trace(), schedule.device_index());
}

// Returns the fragmentation of a listed state; at_event and the unservable share, which need
// requests, stay 0. Definitions: docs/metrics.md. O(blocks).
proto::Fragmentation FragmentationOf(const MemoryState& state);

// Adds the segments of a state in the terms of torch.cuda.memory_snapshot().
void AddSegments(const MemoryState& state,
                 google::protobuf::RepeatedPtrField<proto::Segment>* segments);

}  // namespace memreplay
