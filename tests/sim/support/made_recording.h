// Recordings made by the simulator itself from random programs: what a snapshot
// of such a run would hold, and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/event.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay::testing {

struct Made {
  uint64_t seed = 1;
  uint32_t requests = 500;
  AllocatorConfig config = {};
  std::string_view torch = "";  // release; "" = the default
  Bytes capacity = GiB(64);
  uint32_t streams = 1;
  bool late_frees = false;     // blocks used on other streams, completing later
  bool empty_caches = false;   // now and then
  bool stacks = true;          // every request its own, as with the level "all"
  uint32_t pools = 0;          // private pools, filled now and then
  uint32_t pools_from = 0;     // the first request before which one may be filled
  bool release_pools = false;  // and given up again
  bool event_pools = true;     // events name their pools, as from 2.13 on
  Bytes largest = MiB(64);     // requests are log-uniform up to this
  bool few_sizes = false;      // many blocks of equal sizes
  // Settings, or as numbers shares of the GPU, that the script sets on the way, at equal distances,
  // and that Python notes. A trace with shares does not say the GPU's memory elsewhere.
  std::vector<std::string> changes = {};
};

// Returns what a snapshot with blocks and events of a release has and lacks.
LayoutFacts LayoutOf(const TorchProfile& profile);

const TorchProfile& ProfileOf(const Made& made);

// Runs the schedule and records it from the first event on.
Trace MakeRecording(const Made& made);

// Returns the recording with the pools of the final segments only, as files before 2.13 name them.
std::shared_ptr<Trace> WithoutGonePools(const Made& made);

// Records these requests instead.
Trace RecordingOf(const std::vector<Event>& requests, const Made& made);

// Does the same without the first `events` events, as after a lost head.
std::shared_ptr<const Trace> WithoutHead(const Made& made, size_t events);

}  // namespace memreplay::testing
