// Options of MemPools, in files without notes of them (NoteKind::kPool). That a pool does not split
// its segments shows in what the allocator did.
#pragma once

#include <optional>
#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns whether the file has pools whose options it may not contain.
bool MayHavePoolOptions(const Trace& trace);

// Options that a file does not contain.
struct PoolOptions {
  InferredPools pools;  // their flags alone
  std::string note;     // a sentence for the report
};

// Finds pools that do not split segments in a recording that does not replay exactly: where the
// replay leaves the recording, the pool of that event is taken as one, so that every event and
// every final block is as recorded in the end. Returns nullopt if there are none. `config` has the
// settings during the recording; `without` is the result of `plain`. At most one replay for each
// pool.
std::optional<PoolOptions> FindPoolOptions(const Schedule& plain, const AllocatorConfig& config,
                                           const TorchProfile& profile,
                                           const RecordingFollowed& without);

}  // namespace memreplay
