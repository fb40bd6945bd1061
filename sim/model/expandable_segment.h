// One address reservation of an expandable segment. Which pages are mapped is
// told by its blocks (Block::mapped); this only names the reservation.
#ifndef MEMREPLAY_SIM_MODEL_EXPANDABLE_SEGMENT_H_
#define MEMREPLAY_SIM_MODEL_EXPANDABLE_SEGMENT_H_

#include "trace/value/units.h"

namespace memreplay {

struct ExpandableSegment {
  Address base;
  Bytes page;  // granularity of mapping: 2 MiB in small pools, the large segment size in large
  Bytes size;  // a multiple of page
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_EXPANDABLE_SEGMENT_H_
