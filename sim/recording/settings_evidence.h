// Finds signs in a recording that its settings were not those that its file lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

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
