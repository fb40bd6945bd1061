// Turns a run back into a recording: what a snapshot of the simulated program
// would hold, to be written for torch's own tools or replayed again.
#ifndef MEMREPLAY_SIM_OBSERVE_TRACE_RECORDER_H_
#define MEMREPLAY_SIM_OBSERVE_TRACE_RECORDER_H_

#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/observer.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// Keeps the events that PyTorch's trace has; ids are left out, as a snapshot
// names blocks by address.
class TraceRecorder final : public Observer {
 public:
  void OnEvent(const Event& event) override;
  std::vector<Event> TakeEvents() { return std::move(events_); }

 private:
  std::vector<Event> events_;
};

// One device of a recording: its events and the state after them.
struct RecordedRun {
  int device = 0;
  std::vector<Event> events;
  MemoryState final_state;
  std::vector<PoolId> pools = {};  // Schedule::pools(), if they are more than the source's
};

// The recording of runs of `source`, whose tables the events refer to, as that release would have
// made it.
// O(events + tables).
Trace MakeRecording(const Trace& source, const RecordedSettings& settings,
                    std::string_view torch_release, std::vector<RecordedRun> runs);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_TRACE_RECORDER_H_
