// What each allocation of a schedule is for: its category, phase, step and module.
#ifndef MEMREPLAY_SIM_CATEGORY_MEANINGS_H_
#define MEMREPLAY_SIM_CATEGORY_MEANINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sim/category/category.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// What one allocation is for, and how that is known.
struct Meaning {
  Category category = Category::kUnknown;
  Evidence evidence = Evidence::kNone;
  Phase phase = Phase::kOther;  // in which it was made; of what was live at the start, kLoad
  uint32_t step = 0;            // from 1: steps of an optimizer, as far as the recording goes
  uint32_t module = 0;          // in Meanings::modules; 0: none is known
};

// A stretch of events in one phase.
struct PhaseSpan {
  uint64_t begin = 0;  // positions in the events of the file, or in a program's requests
  uint64_t end = 0;
  Phase phase = Phase::kOther;
  uint32_t step = 0;
};

// What every allocation of a device is for.
struct Meanings {
  std::vector<Meaning> of;           // by AllocationId
  std::vector<std::string> modules;  // "transformer.h.3.attn"; the first is ""
  std::vector<PhaseSpan> phases;     // ascending, without gaps
  bool is_told = false;              // by Python's notes
  bool trains = false;               // there is a backward pass
};

// From Python's notes where there are some; else from stacks, lifetimes and sizes
// (docs/metrics.md). A program's tags and phases say what theirs are. `use_notes` false: as if
// there were none. O(events + frames).
Meanings FindMeanings(const Schedule& schedule, bool use_notes = true);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_CATEGORY_MEANINGS_H_
