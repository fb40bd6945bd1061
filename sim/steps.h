// The steps of a training (or serving) loop, found in what it allocates, and
// what each of them leaves behind.
#ifndef MEMREPLAY_SIM_STEPS_H_
#define MEMREPLAY_SIM_STEPS_H_

#include <cstdint>
#include <vector>

#include "trace/trace.h"
#include "trace/units.h"

namespace memreplay {

enum class StepSource : uint8_t {
  kNone,
  kMarks,   // phases of a program whose names begin alike and differ in a number
  kPeriod,  // the sequence of allocations repeats itself
};

struct Steps {
  StepSource source = StepSource::kNone;
  // Positions in DeviceTrace::events where steps begin, ascending, and behind
  // the last whole step its end. Empty, or at least kLeastSteps + 1.
  std::vector<uint64_t> begins;
  uint64_t allocations_per_step = 0;  // the median
  // kPeriod: the share of the allocations inside the steps that are the same,
  // in size, stream and stack, one step on.
  double agreement = 1;
  // The share of all allocations before `end` that the steps hold.
  double coverage = 0;

  size_t count() const { return begins.empty() ? 0 : begins.size() - 1; }
};

inline constexpr size_t kLeastSteps = 3;

// Looks at events before `end`. Of the periods under which the longest stretch
// of allocations repeats, the shortest; steps begin where least is live.
// O(events), a constant number of passes over the allocations.
Steps FindSteps(const Trace& trace, const DeviceTrace& device, uint64_t end);

// What one stack has left behind in the steps.
struct StackGrowth {
  uint32_t stack = 0;
  uint64_t steps = 0;            // steps that left something of it
  uint64_t allocations = 0;      // left, in all of them
  int64_t bytes = 0;             // requested sizes of those
  std::vector<uint64_t> events;  // of the first few
};

struct StepGrowth {
  std::vector<int64_t> live;  // requested bytes live at each of Steps::begins
  int64_t median = 0;         // of the differences: bytes per step
  uint64_t growing = 0;       // steps after which more is live than before
  int64_t swing = 0;          // median over steps of (highest live in it - live at its begin)
  // What is still live at `end`, by the stack that allocated it, most first.
  std::vector<StackGrowth> stacks;
};

// At position `end`, after all steps. `survives_until`: allocations that are
// freed before that position do not count as left behind (the end of the
// recording: an exception that unwinds frees what is no leak). O(events).
StepGrowth GrowthPerStep(const Trace& trace, const DeviceTrace& device, const Steps& steps,
                         uint64_t survives_until);

// The stack behind a leak, null without one: memory grows in three of four
// steps, by no more than half of what a step takes and gives back, and the stack
// left something behind in three of four. (The layers of one forward pass also
// leave activations behind, one like the other, but give little back.)
const StackGrowth* FindLeak(const Steps& steps, const StepGrowth& growth);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_STEPS_H_
