// The time that driver calls take, as measured on a GPU, so that counts of calls can be turned into
// an estimate.
#pragma once

#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// A cost in nanoseconds by size. It is interpolated linearly between measured sizes, constant below
// the smallest, and proportional to the size above the largest.
class CostBySize {
 public:
  // Sets the cost of a size. Sizes may be set in any order; a later call replaces an earlier one
  // for the same size.
  void Set(Bytes size, double nanoseconds);
  // Returns 0 if nothing was measured. O(log sizes).
  double At(Bytes size) const;
  bool empty() const { return points_.empty(); }

 private:
  struct Point {
    Bytes size;
    double nanoseconds;
  };
  std::vector<Point> points_;  // ascending
};

// The costs of one call, or of one page. Waits are not included, because they take as long as the
// script's work. A refused call is assumed to cost as much as a granted one.
struct CallCosts {
  CostBySize segment_alloc;  // cudaMalloc
  CostBySize segment_free;   // cudaFree on an idle GPU
  CostBySize map;            // a page created, mapped and made accessible
  CostBySize unmap;          // a page unmapped and released
};

}  // namespace memreplay
