// Explains in words why a replay diverged from its recording, as by settings other than those that
// its file lists.
#pragma once

#include <cstdint>
#include <optional>
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

// The first sign of other settings.
struct OtherSettings {
  uint64_t event = 0;  // in Schedule::recorded()
  std::string sign;  // "event 3 obtained a segment of ... bytes, where these settings request ..."
};

// Returns the first new memory (a segment's size, or its being mapped or not) or block to which
// `config`, with which the recording began, and the changes that Python noted would not have led;
// nullopt if there is none. A file lists the settings at its end, and PyTorch does not record
// changes. O(events).
std::optional<OtherSettings> FindOtherSettings(const Schedule& schedule,
                                               const AllocatorConfig& config,
                                               const TorchProfile& profile);

}  // namespace memreplay
