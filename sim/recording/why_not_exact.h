// In words, why a replay left its recording.
#ifndef MEMREPLAY_SIM_RECORDING_WHY_NOT_EXACT_H_
#define MEMREPLAY_SIM_RECORDING_WHY_NOT_EXACT_H_

#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// The first divergence, and what the file leaves open that may have caused it:
// several clauses, or that nothing in the file explains it. "" without one.
std::string WhyNotExact(const ExactReplayResult& result, const Schedule& schedule,
                        const AllocatorConfig& config, const TorchProfile& profile);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_WHY_NOT_EXACT_H_
