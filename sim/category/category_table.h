// How much memory each category holds: where each phase peaks, and by module.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/category/meanings.h"
#include "trace/value/units.h"

namespace memreplay {

using BytesByCategory = std::array<Bytes, kCategories>;

// What is live at a moment, the peak unless it says otherwise, in requested bytes from alloc to
// free.
struct CategoryPeak {
  Bytes live;
  uint64_t event = 0;  // that first reaches it: a position in the events of the file
  Phase phase = Phase::kOther;
  uint32_t step = 0;
  bool is_in_vain = false;     // PhaseSpan
  BytesByCategory bytes = {};  // adds up to `live`
};

// A module with those inside it.
struct ModuleUse {
  std::string path;  // "" is memory without a known module
  Bytes at_peak;     // of CategoryTable::peak, made while it ran, and its parameters, gradients and
                     // their state
  Bytes most;        // its own peak, perhaps at another moment
  BytesByCategory bytes = {};  // at_peak
};

// What memory is for, at the peak and phase by phase.
struct CategoryTable {
  CategoryPeak peak;                 // or the requested moment
  std::vector<CategoryPeak> phases;  // the peak within each existing phase, in the order of Phase
  std::vector<ModuleUse> modules;    // by path, a parent before its children
  std::array<Bytes, kEvidences> evidence = {};       // bytes at the peak, by evidence
  std::vector<std::pair<AllocationId, Bytes>> live;  // at the peak
  std::vector<uint32_t> stacks;                      // of these
};

// Adds up categories over time. If `until` is given, events of the file from this one on are left
// out, and the moment before it takes the place of the peak. O(events * depth of modules).
CategoryTable CategoriesOverTime(const Schedule& schedule, const Meanings& meanings,
                                 std::optional<uint64_t> until = std::nullopt);

}  // namespace memreplay
