// The cached blocks of one kind (small or large) of one pool.
#ifndef MEMREPLAY_SIM_MODEL_BLOCK_POOL_H_
#define MEMREPLAY_SIM_MODEL_BLOCK_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_set.h"
#include "sim/model/block.h"
#include "sim/model/free_set.h"
#include "sim/model/memory_stats.h"

namespace memreplay {

struct PrivatePool;

// Address ranges without pages of one stream, by address.
struct UnmappedLess {
  bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
};
using UnmappedSet = absl::btree_set<Block*, UnmappedLess>;

// PyTorch orders a pool's set by (stream, size, address); keeping a set per
// stream is the same order, since no operation crosses streams.
class BlockPool {
 public:
  BlockPool(bool is_large, PrivatePool* owner, uint16_t index)
      : is_large_(is_large),
        part_(StatArray::PartOf(is_large)),
        owner_(owner),
        index_(index),
        free_(1),
        unmapped_(1) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  bool is_large() const { return is_large_; }
  StatArray::Part part() const { return part_; }  // of statistics that are kept by size
  PrivatePool* owner() const { return owner_; }   // null: default pool
  uint16_t index() const { return index_; }       // of the pool's id in the trace; 0 = default

  // Free, mapped blocks. Insert() stamps the block's gc_base.
  [[gnu::always_inline]] void Insert(Block* block) {
    block->gc_base = lookups;
    block->is_free = true;
    free_of(block->stream).Insert(block);
  }
  [[gnu::always_inline]] void Erase(Block* block) {
    block->is_free = false;
    free_of(block->stream).Erase(block);
  }
  FreeSet& free_of(uint32_t stream) {
    if (stream >= streams_) [[unlikely]] {
      AddStreams(stream + 1);
    }
    return free_[stream];
  }
  UnmappedSet& unmapped_of(uint32_t stream) {
    if (stream >= streams_) [[unlikely]] {
      AddStreams(stream + 1);
    }
    return unmapped_[stream];
  }
  const std::vector<FreeSet>& free_sets() const { return free_; }  // by stream
  const std::vector<UnmappedSet>& unmapped_sets() const { return unmapped_; }

  // All free blocks in PyTorch's order.
  std::vector<Block*> FreeBlocks() const {
    std::vector<Block*> blocks;
    for (const FreeSet& set : free_) {
      set.Visit([&blocks](Block* block) { blocks.push_back(block); });
    }
    return blocks;
  }

  uint64_t lookups = 0;  // get_free_block calls while garbage collection is on

 private:
  [[gnu::noinline]] void AddStreams(uint32_t streams) {
    free_.resize(streams);
    unmapped_.resize(streams);
    streams_ = streams;
  }

  bool is_large_;
  StatArray::Part part_;
  PrivatePool* owner_;
  uint16_t index_;
  uint32_t streams_ = 1;  // of which there are sets
  std::vector<FreeSet> free_;
  std::vector<UnmappedSet> unmapped_;
};

// A pool of its own for a CUDA graph or a MemPool.
struct PrivatePool {
  PrivatePool(PoolId pool_id, uint16_t pool_index)
      : id(pool_id),
        index(pool_index),
        small(false, this, pool_index),
        large(true, this, pool_index) {}

  PoolId id;
  uint16_t index;
  int64_t use_count = 1;          // contexts and graphs that hold it
  int64_t cuda_malloc_count = 0;  // PyTorch's cudaMalloc_count, with its quirks
  BlockPool small;
  BlockPool large;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_BLOCK_POOL_H_
