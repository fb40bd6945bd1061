// Where all allocations of a program could lie if their lifetimes were known in
// advance: a measure of how much of an allocator's memory is fragmentation.
#ifndef MEMREPLAY_SIM_WORKLOAD_PACKING_H_
#define MEMREPLAY_SIM_WORKLOAD_PACKING_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "sim/workload/lifetimes.h"
#include "trace/value/units.h"

namespace memreplay {

// Where each lifetime lies in a packing.
struct Packing {
  Bytes height;                  // the end of what lies highest
  std::vector<uint64_t> offset;  // of each lifetime, in bytes; a multiple of 512
  std::string_view heuristic;    // that found it
};

// How much work a packing may take.
struct PackingOptions {
  // Pairs of lifetimes looked at per heuristic that compares them; allocations
  // beyond, the smallest ones, are packed by themselves on top.
  uint64_t pair_budget = 6'000'000;
};

// The lowest of several packings of the rounded sizes: nothing overlaps that is in
// use at the same time, nothing moves. At least PeakLiveOf().rounded high; where it
// is as high, it is optimal, else a better one may exist (the problem is NP-hard).
// `lifetimes` as LifetimesOf() gives them. Same input, same packing. Of 2 TiB and
// more only the packing without lookahead is tried.
// O(n log n + pair_budget * log n).
Packing BestPacking(absl::Span<const Lifetime> lifetimes, const PackingOptions& options = {});

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_WORKLOAD_PACKING_H_
