// Measures what it costs that a script allocates on several streams.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// How much less would be reserved if streams were merged.
struct StreamCost {
  Bytes peak_reserved;             // unchanged
  Bytes peak_reserved_one_stream;  // with everything on one stream
  uint32_t main_stream = 0;        // requests the most bytes
  // The result of making one stream's requests on the main stream, for at most kMaxMerged of the
  // others, in the order of how much they request.
  struct Merged {
    uint32_t stream = 0;
    Bytes peak_reserved;
  };
  std::vector<Merged> merged;
};
inline constexpr size_t kMaxMerged = 8;

// Runs under `settings` on an unlimited device, since nothing is ever cached for one stream while
// another runs short there: two runs, and one for each of `merged`. For cold schedules: what a
// recording began with keeps its streams. Error: ReplayWhatIf()'s.
absl::StatusOr<StreamCost> CostOfStreams(const Schedule& schedule, const ReplaySettings& settings);

}  // namespace memreplay
