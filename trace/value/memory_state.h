// The state of device memory as a snapshot lists it: segments, each with its blocks in address
// order. It describes the state in a file and after a run.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// The state of a block.
enum class BlockState : uint8_t {
  kAllocated,    // "active_allocated"
  kPendingFree,  // "active_pending_free": freed, but other streams may still use it
  kInactive,     // "inactive"
};

// Returns PyTorch's name of the state.
constexpr std::string_view BlockStateName(BlockState state) {
  switch (state) {
    case BlockState::kAllocated: return "active_allocated";
    case BlockState::kPendingFree: return "active_pending_free";
    case BlockState::kInactive: return "inactive";
  }
  return "unknown";
}

// Returns the state of that name; nullopt for any other text.
constexpr std::optional<BlockState> BlockStateFromName(std::string_view name) {
  for (const BlockState state :
       {BlockState::kAllocated, BlockState::kPendingFree, BlockState::kInactive}) {
    if (BlockStateName(state) == name) return state;
  }
  return std::nullopt;
}

// A block of a segment at a given moment.
struct BlockInfo {
  Address address;  // null in files of PyTorch 2.0; the reader fills it in
  Bytes size;
  Bytes requested_size;  // that of the last allocation for inactive blocks
  BlockState state = BlockState::kInactive;
  AllocationId id = kNoAllocation;  // of active blocks, if known
  uint32_t stack = 0;
  uint32_t pending_stream = 0;  // start states, kPendingFree: the stream that the free waits for
};

// One cudaMalloc segment, or one contiguous mapped range of an expandable one.
struct SegmentInfo {
  Address address;
  Bytes total_size;
  StreamHandle stream;
  PoolId pool_id;
  bool is_large = false;  // segment_type "large": the kind of its pool, not its size
  bool is_expandable = false;
  uint32_t stack = 0;
  std::vector<BlockInfo> blocks;
};

// All segments of one device, ascending by address.
using MemoryState = std::vector<SegmentInfo>;

// Returns whether a driver can return `segment` after `before`, the segment below it (null: none):
// it must not overlap `before` and must end below kAddressesEnd.
constexpr bool IsPossible(const SegmentInfo& segment, const SegmentInfo* before) {
  const bool overlaps = before != nullptr && segment.address < before->address + before->total_size;
  return !overlaps && segment.address < kAddressesEnd &&
         segment.total_size < kAddressesEnd - segment.address;
}

}  // namespace memreplay
