// Private pools (of a CUDA graph or a MemPool) that were gone when a snapshot was taken.
// Before PyTorch 2.13 only the segments that are still there say whose pool they are; the
// others are known by what the allocator did not do: it left a block alone that fitted.
#ifndef MEMREPLAY_SIM_RECORDING_GONE_POOLS_H_
#define MEMREPLAY_SIM_RECORDING_GONE_POOLS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/trace.h"

namespace memreplay {

// Whether a segment was released that may have been of such a pool.
bool MayHaveGonePools(const Trace& trace);

// For each device of a recording that does not replay exactly: looks for released segments which,
// taken as those of private pools, make every event and every final block as recorded, and writes
// the pool of each event into the trace. A pool that the file does not name is called (1, 1),
// (2, 2) ..., which PyTorch's never are. A device for which none are found is left as it was.
// `config` are the settings in force during the recording, `untold` is what comes of them without
// such pools, of each device that has events. Returns sentences for the report.
// Replays as often as it has guesses: up to hundreds of times, and tens of millions of events.
std::vector<std::string> TellGonePools(const std::shared_ptr<Trace>& trace,
                                       const AllocatorConfig& config, const TorchProfile& profile,
                                       absl::Span<const RecordingFollowed> untold);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_GONE_POOLS_H_
