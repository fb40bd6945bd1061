// Private pools (of a CUDA graph or a MemPool) that no longer existed when a snapshot was taken.
// Before PyTorch 2.13 only the segments that still exist name their pool. The others show in what
// the allocator did not do: it did not use a block that fitted.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns whether a segment was released that may have belonged to such a pool.
bool MayHaveGonePools(const Trace& trace);
// Returns whether the schedule's device releases one and MayHaveGonePools() of its trace.
bool MayHaveGonePools(const Schedule& schedule);

// Pools that existed during a recording and are not in its final state.
struct GonePools {
  InferredPools pools;
  std::string note;  // a sentence for the report
};

// Finds the pools of one device of a recording that does not replay exactly: looks for released
// segments which, taken as those of private pools, make every event and every final block as
// recorded. A pool that the file does not name is called (1, 1), (2, 2) ..., which PyTorch's never
// are. Returns nullopt if no such segments are found. `config` has the settings during the
// recording; `without` is the result without such pools. Replays once for each guess, up to
// hundreds of times and tens of millions of events.
std::optional<GonePools> FindGonePools(const std::shared_ptr<const Trace>& trace, size_t device,
                                       const AllocatorConfig& config, const TorchProfile& profile,
                                       const RecordingFollowed& without);

}  // namespace memreplay
