// Steps that PyTorch or the program annotated in a recording.
#ifndef MEMREPLAY_SIM_WORKLOAD_ANNOTATED_STEPS_H_
#define MEMREPLAY_SIM_WORKLOAD_ANNOTATED_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay {

// The steps that annotations of a recording mark.
struct AnnotatedSteps {
  std::string name;  // of the annotations used
  // Positions in DeviceTrace::events where steps begin and where the last ends.
  std::vector<uint64_t> begins;
  // The most steps that any name which comes once in a step (an optimizer's step
  // or zero_grad, a DataLoader's next) shows; 0 if there is none.
  uint64_t known = 0;
  std::string known_name;
};

// Ranges with a number at the end and "step", "iter" or "batch" in their name
// (ProfilerStep#7); else the times between the ends of one optimizer's steps.
// Looks at events before `end`; nothing without times. O(annotations * log events).
AnnotatedSteps FindAnnotatedSteps(const Trace& trace, const DeviceTrace& device, uint64_t end);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_ANNOTATED_STEPS_H_
