// What the steps of a loop leave behind.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/workload/steps.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// The growth of what one site holds. A site is a stack, or a size if no stack was recorded.
struct SiteGrowth {
  uint32_t stack = 0;
  Bytes size;                    // of all its allocations; 0 if sizes differ or a stack is known
  uint64_t steps = 0;            // after which it holds more than before
  uint64_t late_steps = 0;       // of those, in the last quarter of all
  uint64_t every = 0;            // it grows every so many steps; 0 if irregular or fewer than 3
  bool released = false;         // once freed half of the growth of three steps or more
  int64_t bytes = 0;             // growth from before the first step to after the last
  int64_t kept = 0;              // growth from before the first step to `survives_until`
  uint64_t allocations = 0;      // made within the steps (else after them) and still live then
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

// Measures the growth. What is freed before the position `survives_until` is not kept (at the end
// of a recording, an exception that unwinds frees what is no leak). O(events).
StepGrowth GrowthPerStep(const Trace& trace, const DeviceTrace& device, const Steps& steps,
                         uint64_t survives_until);

// Returns whether the repeats may be the layers of one pass: they were found by their period, are
// not known to be whole, and keep more than half of what they take. (Layers of a forward pass leave
// similar activations behind and free little; so do steps that hold on to their graphs.)
bool MayBeLayers(const Steps& steps, const StepGrowth& growth);

// Returns the site behind a leak, or null if there is none. It is the one that grew most of the
// sites that
//   * grow in three of four steps, and in three of four of the last quarter (a full cache does
//   not),
//     or every so many steps up to the last;
//   * never freed much of it; and
//   * keep at least half of it to `survives_until`.
// Returns null for what may be layers.
const SiteGrowth* FindLeak(const Steps& steps, const StepGrowth& growth);

}  // namespace memreplay
