// What each allocation of a schedule is for: its category, phase, step and module.
#pragma once

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
  Phase phase = Phase::kOther;  // in which it was made; kLoad for what was live at the start
  uint32_t step = 0;            // of an optimizer in the recording, from 1
  uint32_t module = 0;          // in Meanings::modules; 0 if unknown
};

// A stretch of events in one phase.
struct PhaseSpan {
  uint64_t begin = 0;  // in the events of the file, or in the requests of a written schedule
  uint64_t end = 0;
  Phase phase = Phase::kOther;
  uint32_t step = 0;
  bool is_in_vain = false;  // a forward pass that keeps what no backward pass uses
};

// What every allocation of a device is for.
struct Meanings {
  std::vector<Meaning> of;           // by AllocationId
  std::vector<std::string> modules;  // "transformer.h.3.attn"; the first is ""
  std::vector<PhaseSpan> phases;     // ascending, without gaps
  bool is_noted = false;             // whether Python's notes say it
  bool trains = false;               // whether there is a backward pass
};

// Finds meanings from Python's notes if there are some, else from stacks, lifetimes and sizes
// (docs/metrics.md). A written schedule's tags and phases state its own. If `use_notes` is false,
// notes are ignored. O(events + frames).
Meanings FindMeanings(const Schedule& schedule, bool use_notes = true);

}  // namespace memreplay
