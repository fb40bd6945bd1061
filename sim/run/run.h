// The one verb: feeds a schedule to an allocator.
#ifndef MEMREPLAY_SIM_RUN_RUN_H_
#define MEMREPLAY_SIM_RUN_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/allocator.h"
#include "sim/model/device.h"
#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A request that PyTorch would have answered with an exception (a bad settings
// string, a pool ended twice). An outcome, not an error of the run.
struct RequestFailure {
  uint64_t request = 0;  // index into Schedule::requests()
  std::string message;
  // An OutOfMemoryError that leaves no trace entry: a rejection, or more than 1 EB asked.
  bool is_out_of_memory = false;
};

struct RunResult {
  uint64_t ooms = 0;
  std::vector<RequestFailure> failures;
};

// Interferes with a run, for questions of the kind "what if, just here". The seam
// for whoever applies requests of his own; who only looks is an Observer.
class Intervention {
 public:
  enum class Next : uint8_t { kApply, kSkip, kStop };
  virtual ~Intervention() = default;
  // Before the request with this index in Schedule::requests() is applied (or
  // skipped, or the run ends). May apply requests of its own to `allocator`,
  // passing `observer` on.
  virtual Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) = 0;
};

struct RunOptions {
  bool check_invariants = false;         // after every request; slow
  Device* device = nullptr;              // told which request comes next; not owned
  Intervention* intervention = nullptr;  // not owned
};

// For each request: allocator.Apply(request, observer). Observers see marks and
// settings too. O(requests). What comes before and after is Replay()'s (replay.h).
RunResult Run(const Schedule& schedule, Allocator& allocator, Observer& observer,
              const RunOptions& options = {});

// Passes what the file recorded to `observer`, unsimulated.
void ObserveRecorded(const Schedule& schedule, Observer& observer);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RUN_RUN_H_
