// Replays a recording as it happened, with the recorded responses of the driver, and compares the
// replay with the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/device/recorded_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/model/memory_stats.h"
#include "sim/model/observer.h"
#include "sim/observe/fidelity.h"
#include "sim/recording/start_state.h"
#include "sim/run/run.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// What replays of a recording begin with. It depends only on their settings.
struct ExactStart {
  StartState start;        // empty for cold traces; its diagnostics are for the report
  RestoreHints hints;      // on that start
  bool ties_known = true;  // false if choices between equal blocks contradict each other
  // Whether the start has the requested sizes of free blocks, as far as they can be found.
  bool has_free_requests = true;
  std::optional<uint64_t> allocations_before_peak;  // AllocationsBeforePeak(), if it was needed
};

// How a recording is replayed.
struct ExactReplayOptions {
  bool check_invariants = false;
  // Whether to stop at the request at which the replay diverges from the recording. What the result
  // says about the end, and why it diverged, is then void. The observer must not look at the
  // requested sizes of cached blocks, which are found during the replay.
  bool stop_at_divergence = false;
  Intervention* intervention = nullptr;  // may watch and stop; changes void the comparison
  Observer* observer = nullptr;          // sees the replay; not owned
  // Whether the observer may see wrong requested sizes of free blocks of the start. They change
  // nothing that a replay does.
  bool ignores_free_requests = false;
  const ExactStart* start = nullptr;  // known from a replay under the same settings
};

// How a replay compares with its recording.
struct ExactReplayResult : ExactStart {
  RunResult run;
  uint64_t recorded_events = 0;
  uint64_t compared_events = 0;  // those that PyTorch records
  uint64_t matched_events = 0;
  std::optional<Divergence> first_divergence;
  FinalComparison final_blocks;  // all zero if the file has no final state
  // The number of recorded events if every one is exact, else the index of the first that is not,
  // and why.
  uint64_t exact_until_event = 0;
  std::string exactness_reason;
  MemoryStats statistics;  // at the end
  MemoryState segments;    // at the end
  GpuLimits card;          // as far as the replay followed the recording
};

// Rebuilds the start state if the trace is warm, replays on a RecordedDevice and compares. `config`
// has the settings during the recording. The schedule must be a recording's. A warm trace is run up
// to three times: to find which of equal blocks were older (from 2.12 on), to find which cached
// block of the start each final one stems from (for their stale requested sizes; this is found with
// the result if nothing may see that they are unknown), and for the result and the observer. Only
// the last of these is made if the start is known.
ExactReplayResult ReplayAsRecorded(const Schedule& schedule, const AllocatorConfig& config,
                                   const TorchProfile& profile,
                                   const ExactReplayOptions& options = {});

// Repeats a replay under the same settings for an observer, until `intervention` stops it. Nothing
// is compared.
void RepeatReplay(const Schedule& schedule, const AllocatorConfig& config,
                  const TorchProfile& profile, const ExactStart& start, Observer& observer,
                  Intervention& intervention);

// How far a replay follows its recording, at most to where it diverges.
struct RecordingFollowed {
  bool exact = false;        // of every event and final block
  uint64_t until_event = 0;  // ExactReplayResult::exact_until_event
  std::optional<Divergence> divergence;
};
RecordingFollowed FollowedBy(const ExactReplayResult& replay);
RecordingFollowed FollowRecording(const Schedule& schedule, const AllocatorConfig& config,
                                  const TorchProfile& profile);

}  // namespace memreplay
