// A contiguous address range that the caching allocator hands out, caches, or
// (expandable segments) has reserved without memory behind it.
//
// Which object survives a split or a merge is observable: a cached block
// reports the requested size of the last allocation made through the object.
// Split: the front part is a new object, the original becomes the remainder.
// Merge: the object being freed, mapped or unmapped survives.
// Source: docs/fidelity.md, [blocks].
#ifndef MEMREPLAY_SIM_MODEL_BLOCK_H_
#define MEMREPLAY_SIM_MODEL_BLOCK_H_

#include <cstdint>
#include <memory>

#include "sim/model/stream_uses.h"
#include "trace/value/units.h"

namespace memreplay {

class BlockPool;
struct ExpandableSegment;

// What most requests look at comes first, on a cache line of its own.
struct alignas(64) Block {
  Address address;
  Bytes size;
  Block* prev = nullptr;  // neighbours by address in the same segment
  Block* next = nullptr;
  BlockPool* pool = nullptr;
  uint64_t order = 0;               // among cached blocks of one size
  AllocationId id = kNoAllocation;  // while active
  uint32_t stream = 0;
  uint32_t stack = 0;   // of the last allocation, while active
  bool in_use = false;  // the object exists (slab bookkeeping)
  bool allocated = false;
  bool mapped = true;                       // false: a range of an expandable segment without pages
  bool is_free = false;                     // in its pool's free set
  Bytes requested_size;                     // set by each allocation, never cleared
  std::unique_ptr<StreamUses> uses;         // null: never recorded on another stream
  ExpandableSegment* expandable = nullptr;  // null: a cudaMalloc segment
  uint64_t gc_base = 0;                     // pool's lookup count at the last insertion
  uint32_t segment_stack = 0;               // of the segment's creation; of the head block only
  uint32_t event_count = 0;                 // outstanding end-of-life events

  bool is_split() const { return prev != nullptr || next != nullptr; }
  bool has_stream_uses() const { return uses != nullptr && !uses->empty(); }
  // Freed by the program, but other streams may still be using it.
  bool is_pending() const { return !allocated && (event_count > 0 || has_stream_uses()); }
  Address end() const { return address + size; }
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_BLOCK_H_
