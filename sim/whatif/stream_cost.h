// Measures what it costs that a script allocates on several streams, and what would happen if
// streams or pools were one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/run.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// Returns what is requested instead of a request: the same on another stream or in another pool, or
// nothing (nullopt).
using Rewrite = std::function<std::optional<Event>(Event request)>;

// Makes all requests on stream 0 and leaves out what synchronises streams.
Rewrite OnOneStream();
// Makes all requests of private pools in the first of them, as if CUDA graphs had been captured
// with one graph_pool_handle().
Rewrite InOnePool();

// An intervention that makes other requests instead of those of a schedule; null leaves them as
// they are. It is for cold schedules: blocks of a start keep their stream and pool.
class Rewriting final : public Intervention {
 public:
  // `schedule` must outlive this.
  Rewriting(const Schedule& schedule, Rewrite rewrite)
      : schedule_(schedule), rewrite_(std::move(rewrite)) {}
  Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) override;

  // Returns a request as it is made.
  std::optional<Event> Rewritten(const Event& request) const {
    return rewrite_ == nullptr ? request : rewrite_(request);
  }

 private:
  const Schedule& schedule_;
  const Rewrite rewrite_;
};

// Returns whether OnOneStream() would change anything.
bool AllocatesOnSeveralStreams(const Schedule& schedule);

// Returns how much each stream requests in all, the busiest first; those that request nothing are
// left out. O(requests).
std::vector<std::pair<Bytes, uint32_t>> BusiestStreams(const Schedule& schedule);

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
