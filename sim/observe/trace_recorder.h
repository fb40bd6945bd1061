// Turns a run back into a recording: what a snapshot of the simulated script would hold, to be
// written for PyTorch's own tools or replayed again.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/observer.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// An observer that keeps the events that PyTorch's trace has, without ids, because a snapshot names
// blocks by address.
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
  std::vector<PoolId> pools = {};  // Schedule::pools(), if there are more than in the source
};

// Returns the recording of runs of `source`, as that release would have made it. The events refer
// to the tables of `source`. O(events + tables).
Trace MakeRecording(const Trace& source, const RecordedSettings& settings,
                    std::string_view torch_release, std::vector<RecordedRun> runs);

}  // namespace memreplay
