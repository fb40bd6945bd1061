// What the calls of a driver cost in time, as measured on some card: plain numbers,
// so that counts of calls can be turned into an estimate.
#ifndef MEMREPLAY_SIM_DEVICE_CALL_COSTS_H_
#define MEMREPLAY_SIM_DEVICE_CALL_COSTS_H_

#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// Nanoseconds by size: straight lines between what was measured; beyond the ends,
// as the nearest size costs, but per byte above the largest.
class CostBySize {
 public:
  // In any order; of one size given twice the later.
  void Set(Bytes size, double nanoseconds);
  // 0 where nothing was measured. O(log sizes).
  double At(Bytes size) const;
  bool empty() const { return points_.empty(); }

 private:
  struct Point {
    Bytes size;
    double nanoseconds;
  };
  std::vector<Point> points_;  // ascending
};

// Of one call each, or of one page. Waits are not here: what they take is the
// program's work. A refused call is taken to cost what a granted one does.
struct CallCosts {
  CostBySize segment_alloc;  // cudaMalloc
  CostBySize segment_free;   // cudaFree, of an idle card
  CostBySize map;            // a page created, mapped and made accessible
  CostBySize unmap;          // a page unmapped and released
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_DEVICE_CALL_COSTS_H_
