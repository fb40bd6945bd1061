// One address reservation of an expandable segment. Its blocks know which pages are mapped
// (Block::mapped).
#pragma once

#include "trace/value/units.h"

namespace memreplay {

// A reservation of addresses, whose pages are mapped as they are needed.
struct ExpandableSegment {
  Address base;
  Bytes page;  // granularity of mapping: 2 MiB in small pools, else the large segment size
  Bytes size;  // a multiple of page
};

}  // namespace memreplay
