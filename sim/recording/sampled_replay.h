// Runs the exact replay of a recording with observers: fragmentation is sampled, and the events are
// completed to what PyTorch's trace would contain.
#pragma once

#include <optional>

#include "sim/model/observer.h"
#include "sim/observe/fragmentation.h"
#include "sim/observe/usage.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// An exact replay, and what observers saw of it.
struct SampledReplay {
  ExactReplayResult exact;
  Usage peak;
  Moments moments;
  std::optional<Fragmentation> fragmentation;
};

// Runs ReplayAsRecorded() under `settings` and samples fragmentation at Moments::at_peak. `extra`
// (may be null) sees the replay and the snapshots of the recording. With `keep_segments` the sample
// has the segments, without the requested sizes of free blocks, which `extra` does not read either.
// `stop_at_divergence` and `start` are those of ExactReplayOptions; only the result of a replay
// that does not diverge is meaningful with the former.
SampledReplay ReplaySampled(const Schedule& schedule, const ReplaySettings& settings,
                            Observer* extra, bool keep_segments = false,
                            bool stop_at_divergence = false, const ExactStart* start = nullptr);

}  // namespace memreplay
