// A block is a contiguous address range that the caching allocator hands out, caches, or
// (expandable segments) has reserved without memory behind it.
//
// Which object survives a split or a merge is observable: a cached block reports the requested size
// of the last allocation made through the object. A split makes a new object of the front part, and
// the original becomes the remainder. A merge keeps the object that is being freed, mapped or
// unmapped. Source: docs/fidelity.md, [blocks].
#pragma once

#include <cstdint>
#include <memory>

#include "sim/model/stream_uses.h"
#include "trace/value/units.h"

namespace memreplay {

// A block. The fields that every request reads are in one cache line; those that few requests need
// are in another.
struct alignas(64) Block {
  Address address;
  Bytes size;             // 0: not in use (slab bookkeeping)
  Bytes requested_size;   // set by each allocation, never cleared
  Block* prev = nullptr;  // neighbours by address in the same segment
  Block* next = nullptr;
  uint64_t order = 0;               // sorts cached blocks of one size
  AllocationId id = kNoAllocation;  // while active
  uint32_t stack = 0;               // of the last allocation, while active
  uint32_t home = 0;                // number of its StreamPool
  bool allocated : 1 = false;
  bool mapped : 1 = true;          // false: a range of an expandable segment without pages
  bool is_free : 1 = false;        // in the free set of its StreamPool
  bool is_expandable : 1 = false;  // reservation > 0
  bool has_rest : 1 = false;       // Rest() was called
  uint32_t reservation : 24 = 0;   // number of its ExpandableSegment; 0: a cudaMalloc segment

  struct alignas(64) Others {
    std::unique_ptr<StreamUses> uses;  // null: never recorded on another stream
    uint64_t gc_base = 0;              // pool's lookup count at the last insertion
    uint32_t segment_stack = 0;        // of the segment's creation; only in the head block
    uint32_t event_count = 0;          // outstanding end-of-life events
  };
  Others rest;
  Others& Rest() {  // for writing
    has_rest = true;
    return rest;
  }

  static constexpr uint32_t kMaxReservations = (1 << 24) - 1;
  void SetReservation(uint32_t number) {
    reservation = number & kMaxReservations;
    is_expandable = number > 0;
  }
  bool in_use() const { return size > Bytes(0); }
  bool is_split() const { return (prev != nullptr) | (next != nullptr); }
  bool has_stream_uses() const { return has_rest && rest.uses != nullptr && !rest.uses->empty(); }
  // Returns whether the script has freed the block but other streams may still be using it.
  bool is_pending() const {
    return has_rest && !allocated && (rest.event_count > 0 || has_stream_uses());
  }
  Address end() const { return address + size; }
};

// One address reservation of an expandable segment, whose pages are mapped as they are needed. Its
// blocks know which are (Block::mapped).
struct ExpandableSegment {
  Address base;
  Bytes page;  // granularity of mapping: 2 MiB in small pools, else the large segment size
  Bytes size;  // a multiple of page
};

}  // namespace memreplay
