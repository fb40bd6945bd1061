// Steps that PyTorch or the script annotated in a recording.
#pragma once

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
  // The maximum number of steps that any name which occurs once in a step (an optimizer's step or
  // zero_grad, a DataLoader's next) shows; 0 if there is none.
  uint64_t known = 0;
  std::string known_name;
};

// Finds ranges with a number at the end and "step", "iter" or "batch" in their name
// (ProfilerStep#7), or else the intervals between the ends of one optimizer's steps. Uses events
// before `end`. Returns nothing if there are no times. O(annotations * log events).
AnnotatedSteps FindAnnotatedSteps(const Trace& trace, const DeviceTrace& device, uint64_t end);

}  // namespace memreplay
