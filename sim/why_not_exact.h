// In words, why a replay left its recording.
#ifndef MEMREPLAY_SIM_WHY_NOT_EXACT_H_
#define MEMREPLAY_SIM_WHY_NOT_EXACT_H_

#include <string>

#include "sim/allocator_config.h"
#include "sim/exact_replay.h"
#include "sim/torch_profile.h"
#include "trace/schedule.h"

namespace memreplay {

// The first divergence, and what the file leaves open that may have caused it:
// several clauses, or that nothing in the file explains it. "" without one.
std::string WhyNotExact(const ExactReplayResult& result, const Schedule& schedule,
                        const AllocatorConfig& config, const TorchProfile& profile);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WHY_NOT_EXACT_H_
