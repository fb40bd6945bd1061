// Explains in words why a replay diverged from its recording.
#pragma once

#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Returns the first divergence, and what the file leaves open that may have caused it, as several
// clauses, or that nothing in the file explains it. "" if there is no divergence.
std::string WhyNotExact(const ExactReplayResult& result, const Schedule& schedule,
                        const AllocatorConfig& config, const TorchProfile& profile);

}  // namespace memreplay
