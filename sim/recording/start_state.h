// The memory that was there when a recording began, rebuilt from what the file
// says about its end and about everything in between.
#ifndef MEMREPLAY_SIM_RECORDING_START_STATE_H_
#define MEMREPLAY_SIM_RECORDING_START_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/diagnostics.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// A block whose extent the file does not fix: it was handed out before the
// recording began, freed within it, and a block of the large pool may be up to
// 1 MiB longer than the rounded request.
struct HiddenExtent {
  Address address;
  Bytes requested;
  Bytes smallest;  // extents that agree with every recorded address
  Bytes largest;
  uint64_t choices = 0;  // how many such extents there are; 0: none agrees
  Bytes chosen;
  uint64_t freed_by = 0;  // recorded event; nothing depends on the extent after it
};

// What existed before the first event of a recording.
struct StartState {
  // Segments, their active blocks with ids, and free blocks between them, whose
  // requested sizes (stale, in no file) are zero. An empty expandable range says
  // where a reservation begins, see CachingAllocator::Restore().
  MemoryState segments;
  uint64_t given = 0;                // extents the final state lists, or that leave no choice
  uint64_t revealed = 0;             // extents told by the address of a block placed behind
  std::vector<HiddenExtent> hidden;  // neither; several may agree with the recording
  // kStartStateUnderdetermined for each of `hidden` with more than one choice.
  Diagnostics diagnostics;
  // The first recorded event that no start state explains, and how it does not.
  std::optional<uint64_t> contradicted_at;
  std::string contradiction;
};

// Segments: those of the end, less what the trace obtained, plus what it
// released. Blocks: the schedule's start allocations. Extents: given, or one of
// those under which every recorded address is the best fit: the first block
// placed behind one shows its end; a larger block taken, or a new segment, while
// a smaller free one would have done, rules extents out; snapshots give sums of
// active bytes. Each extent can be found on its own, since recorded addresses,
// not simulated ones, are followed.
// `config` are the settings during the recording.
// O(events * (log blocks + open extents)).
StartState RebuildStartState(const Schedule& schedule, const AllocatorConfig& config,
                             const TorchProfile& profile);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_START_STATE_H_
