// The steps of a training (or serving) loop: where they begin.
#ifndef MEMREPLAY_SIM_WORKLOAD_STEPS_H_
#define MEMREPLAY_SIM_WORKLOAD_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay {

enum class StepSource : uint8_t {
  kNone,
  kMarks,        // phases of a program whose names begin alike and differ in a number
  kAnnotations,  // ranges that PyTorch or the program annotated in a recording
  kPeriod,       // the sequence of allocations repeats itself
};

// The steps of a loop.
struct Steps {
  StepSource source = StepSource::kNone;
  std::string name;  // kMarks, kAnnotations: of what begins (or, "...step", ends) them
  // Positions in DeviceTrace::events where steps begin, ascending, and behind
  // the last whole step its end. Empty, or at least kMinSteps + 1.
  std::vector<uint64_t> begins;
  uint64_t allocations_per_step = 0;  // the median
  // kPeriod: the share of the allocations inside the steps that are the same,
  // in size, stream and stack, one step on.
  double agreement = 1;
  // The share of all allocations before `end` that the steps hold; what lies
  // between two steps (an evaluation) is not in them.
  double coverage = 0;
  // Three of four steps allocate both under Python code and, without any, in
  // the backward pass: these are no layers of one pass.
  bool whole = false;
  std::string why_none;  // kNone: half a sentence

  size_t count() const { return begins.empty() ? 0 : begins.size() - 1; }
};

inline constexpr size_t kMinSteps = 3;

// Looks at events before `end`. In this order: phases of a program; annotations
// of a recording, numbered ones ("ProfilerStep#7") before an optimizer's step;
// what repeats (repetition.h) by size, stream, pool and stack, or, where that
// holds less than half of all allocations, without the size. What repeats is no
// step where annotations show fewer steps, where less than half of the memory
// requested meanwhile is requested in the repeats, where they move next to nothing
// of what moves, and where each of them frees memory. O(events).
Steps FindSteps(const Trace& trace, const DeviceTrace& device, uint64_t end);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_STEPS_H_
