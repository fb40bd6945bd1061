// What the steps of a loop leave behind.
#ifndef MEMREPLAY_SIM_WORKLOAD_STEP_GROWTH_H_
#define MEMREPLAY_SIM_WORKLOAD_STEP_GROWTH_H_

#include <cstdint>
#include <vector>

#include "sim/workload/steps.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// What one site holds more and more of. A site is a stack; where no stack was
// recorded, a size.
struct SiteGrowth {
  uint32_t stack = 0;
  Bytes size;                    // of all its allocations; 0: sizes differ, or a stack is known
  uint64_t steps = 0;            // after which it holds more than before
  uint64_t late_steps = 0;       // of those, in the last quarter of all
  uint64_t every = 0;            // it grows every that many steps; 0: irregularly, or fewer than 3
  bool given_back = false;       // once, half of what three steps or more had added
  int64_t bytes = 0;             // more after the last step than before the first
  int64_t kept = 0;              // more at `survives_until` than before the first
  uint64_t allocations = 0;      // made within the steps (else after them) and still there then
  std::vector<uint64_t> events;  // positions of the first few of those
};

// What the steps of a loop leave behind.
struct StepGrowth {
  std::vector<int64_t> live;      // requested bytes live at each of Steps::begins
  int64_t median = 0;             // of the differences: bytes per step
  uint64_t growing = 0;           // steps after which more is live than before
  int64_t swing = 0;              // median over steps of (highest live in it - live at its begin)
  std::vector<SiteGrowth> sites;  // with bytes > 0, most first
};

// `survives_until`: what is freed before that position is not kept (the end of
// the recording: an exception that unwinds frees what is no leak). O(events).
StepGrowth GrowthPerStep(const Trace& trace, const DeviceTrace& device, const Steps& steps,
                         uint64_t survives_until);

// What repeats may be the layers of one pass: it was found by its period, it is
// not known to be whole, and it keeps more than half of what it takes. (Layers of
// a forward pass leave activations behind, one like the other, and give little
// back; so do steps that hold on to their graphs.)
bool MayBeLayers(const Steps& steps, const StepGrowth& growth);

// The site behind a leak, null without one: the one that grew most of those that
// grow in three of four steps, and in three of four of the last quarter (a cache
// that is full does not), or every so many steps up to the last; that never
// gave much back; and that keep at least half of it to `survives_until`. None of
// what may be layers.
const SiteGrowth* FindLeak(const Steps& steps, const StepGrowth& growth);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_STEP_GROWTH_H_
