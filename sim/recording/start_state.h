// Rebuilds the memory that existed when a recording began from what the file contains about its end
// and about everything in between.
#pragma once

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

// A block whose extent the file does not fix: it was handed out before the recording began and
// freed within it, and a block of the large pool may be up to 1 MiB longer than the rounded
// request.
struct HiddenExtent {
  Address address;
  Bytes requested;
  Bytes smallest;  // of the extents that agree with every recorded address
  Bytes largest;
  uint64_t choices = 0;  // number of such extents; 0 if none agrees
  Bytes chosen;
  uint64_t freed_by = 0;  // recorded event; nothing after it depends on the extent
};

// What existed before the first event of a recording.
struct StartState {
  // Segments, their active blocks with ids, and free blocks between them, whose requested sizes
  // (stale, in no file) are zero. An empty expandable range marks the begin of a reservation, see
  // CachingAllocator::Restore().
  MemoryState segments;
  uint64_t given = 0;                // extents that the final state lists, or that leave no choice
  uint64_t revealed = 0;             // extents that the address of a block placed behind reveals
  std::vector<HiddenExtent> hidden;  // the others; several extents may agree with the recording
  // kStartStateUnderdetermined for each of `hidden` with more than one choice.
  Diagnostics diagnostics;
  // The first recorded event that no start state explains, and why.
  std::optional<uint64_t> contradicted_at;
  std::string contradiction;
};

// Rebuilds the start state. Segments are those of the end, without what the trace obtained, plus
// what it released. Blocks are the schedule's start allocations. Extents are given, or one of those
// under which every recorded address is the best fit: the first block placed behind one shows its
// end; taking a larger block or a new segment rules out extents that leave a smaller fitting free
// block; snapshots contain sums of active bytes. Each extent can be found on its own, since
// recorded addresses, not simulated ones, are followed. `config` has the settings during the
// recording. O(events * (log blocks + open extents)).
StartState RebuildStartState(const Schedule& schedule, const AllocatorConfig& config,
                             const TorchProfile& profile);

}  // namespace memreplay
