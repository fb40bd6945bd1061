// Where all allocations of a schedule could lie if their lifetimes were known in advance. It
// measures how much of an allocator's memory is fragmentation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/units.h"

namespace memreplay {

// Where each lifetime lies in a packing.
struct Packing {
  Bytes height;                  // the end of the highest lifetime
  std::vector<uint64_t> offset;  // of each lifetime, in bytes, a multiple of 512
  std::string_view heuristic;    // the one that found it
};

// How much work a packing may take.
struct PackingOptions {
  // Maximum number of pairs of lifetimes that a heuristic may compare. Further allocations, the
  // smallest ones, are packed separately on top.
  uint64_t pair_budget = 6'000'000;
};

// Returns the lowest of several packings of the rounded sizes. Nothing that is in use at the same
// time overlaps, and nothing moves. The height is at least PeakLiveOf().rounded; if it is equal,
// the packing is optimal, else a better one may exist (the problem is NP-hard). `lifetimes` come
// from LifetimesOf(). The same input gives the same packing. From 2 TiB on, only the packing
// without lookahead is tried. O(n log n + pair_budget * log n).
Packing BestPacking(absl::Span<const Lifetime> lifetimes, const PackingOptions& options = {});

}  // namespace memreplay
