// What it costs that a program allocates on several streams.
#ifndef MEMREPLAY_SIM_STREAM_COST_H_
#define MEMREPLAY_SIM_STREAM_COST_H_

#include "absl/status/statusor.h"
#include "sim/replay_settings.h"
#include "trace/schedule.h"
#include "trace/units.h"

namespace memreplay {

struct StreamCost {
  Bytes peak_reserved;             // as the program is
  Bytes peak_reserved_one_stream;  // with everything on one stream
};

// Two runs under `settings` on an unlimited device, as nothing is ever cached
// for one stream while another runs short there. For cold schedules: what a
// recording began with keeps its streams. Error: as ReplayWhatIf().
absl::StatusOr<StreamCost> CostOfStreams(const Schedule& schedule, const ReplaySettings& settings);

// How far sums of block sizes may be off because blocks were handed out before
// the recording began: such a block of the large pool, freed within it, may be
// up to 1 MiB longer than its request. Peaks before the recording are in no
// figure at all.
struct HistoryBar {
  uint64_t blocks = 0;  // of unknown extent
  Bytes bytes;          // at most so much more is allocated, active
};
HistoryBar UncertaintyOfStart(const Schedule& schedule);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_STREAM_COST_H_
