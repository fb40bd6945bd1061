// What runs of one schedule have in common before their first request, whatever
// device they are on.
#ifndef MEMREPLAY_SIM_RUN_PREPARE_RUN_H_
#define MEMREPLAY_SIM_RUN_PREPARE_RUN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/model/allocator.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/device.h"
#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// Stream work is complete only when the schedule says so: the completions of a
// recording are requests of its schedule; a program's header tells.
bool CompletesExplicitly(const Schedule& schedule);

// Streams, pools and their order for a run under settings of one's own.
CachingAllocatorOptions AllocatorOptionsFor(const Schedule& schedule);

// The same segments, in the same order, where `device` puts them. Errors:
// Unimplemented: one of them is expandable; ResourceExhausted: no room; what was
// allocated until then is the device's to give back.
absl::StatusOr<MemoryState> RelocateSegments(const MemoryState& recorded, Device& device);

// What was live when recording began, allocated anew in address order. Error: a
// request that PyTorch answers with an exception.
absl::Status AllocateStart(const Schedule& schedule, Allocator& allocator, Observer& observer);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RUN_PREPARE_RUN_H_
