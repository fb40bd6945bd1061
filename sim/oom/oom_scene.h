// The moment when memory runs out: what was requested, and what was where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// The moment at which memory runs out.
struct OomScene {
  size_t request = 0;  // index into Schedule::requests()
  // Position in the file's events: of the oom itself if it is recorded, else of the request that
  // runs out.
  uint64_t event = 0;
  bool recorded = false;  // else a simulated device refused it
  Event oom;              // size = the rounded request, address = free bytes of the device
  Bytes requested;        // unrounded; recordings keep only the rounded size
  MemoryState before;     // when the request arrives
  MemoryState at;         // when it is refused and what could be released has been
  Bytes reserved;         // sum of `at`
  Bytes device_free;
  // The GPU's memory, if it is known: what a memory fraction is of.
  std::optional<Bytes> total;
  // What the device could still grant: device_free, or less under a memory limit.
  Bytes grantable;
  uint64_t ooms = 0;  // in the whole run; the scene is the first, or the last recorded one
  // Whether the replay of a recording agrees with the file up to the scene; else why not.
  bool exact = true;
  std::string inexact_reason;
};

// Replays until memory runs out; returns nullopt if it does not. Replays as recorded if `settings`
// require nothing else, else on a simulated device. Two runs. Error: the settings cannot be run
// (ReplayWhatIf()).
absl::StatusOr<std::optional<OomScene>> FindOom(const Schedule& schedule,
                                                const ReplaySettings& settings);

}  // namespace memreplay
