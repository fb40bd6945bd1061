// The cached blocks of one kind (small or large) of one pool.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "sim/model/block.h"
#include "sim/model/free_set.h"
#include "sim/model/memory_stats.h"

namespace memreplay {

struct PrivatePool;

// An order by address of the ranges without pages of one stream.
struct UnmappedLess {
  bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
};
using UnmappedSet = absl::btree_set<Block*, UnmappedLess>;

class BlockPool;

// The cached blocks of one stream in a block pool. PyTorch orders a pool's set by (stream, size,
// address); a set per stream gives the same order, because no operation crosses streams.
struct StreamPool {
  // Caches a free, mapped block and stamps its gc_base.
  [[gnu::always_inline]] inline void Insert(Block* block);
  [[gnu::always_inline]] void Erase(Block* block) {
    block->is_free = false;
    free.Erase(block);
  }

  BlockPool* pool = nullptr;
  uint32_t stream = 0;
  uint32_t number = 0;  // Block::home
  FreeSet free = {};
  UnmappedSet unmapped = {};
};

// The small or the large pool of blocks of the default pool or of a private one.
class BlockPool {
 public:
  // Numbers StreamPools by their place in `all`, which must outlive this.
  BlockPool(bool is_large, PrivatePool* owner, uint16_t index, std::vector<StreamPool*>& all)
      : is_large_(is_large),
        part_(StatArray::PartOf(is_large)),
        owner_(owner),
        index_(index),
        all_(all) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  bool is_large() const { return is_large_; }
  StatArray::Part part() const { return part_; }  // of statistics that are kept by size
  PrivatePool* owner() const { return owner_; }   // null: default pool
  uint16_t index() const { return index_; }       // index of its id in the trace; 0 is the default

  [[gnu::always_inline]] StreamPool& of(uint32_t stream) {
    if (stream >= streams_.size() || streams_[stream] == nullptr) [[unlikely]] {
      Add(stream);
    }
    return *streams_[stream];
  }
  // Returns the stream pools by stream index; an element is null if its stream never had a block.
  const std::vector<std::unique_ptr<StreamPool>>& streams() const { return streams_; }

  // Visits free blocks in PyTorch's order.
  template <typename Visit>
  void VisitFreeBlocks(const Visit& visit) const {
    for (const auto& stream : streams_) {
      if (stream != nullptr) stream->free.Visit(visit);
    }
  }
  std::vector<Block*> FreeBlocks() const {
    std::vector<Block*> blocks;
    VisitFreeBlocks([&blocks](Block* block) { blocks.push_back(block); });
    return blocks;
  }

  // False if a flush has left nothing to release and no block was cached since.
  bool may_release = true;
  uint64_t lookups = 0;  // get_free_block calls while garbage collection is on

 private:
  [[gnu::noinline]] void Add(uint32_t stream) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    streams_[stream] = std::make_unique<StreamPool>(
        StreamPool{.pool = this, .stream = stream, .number = static_cast<uint32_t>(all_.size())});
    all_.push_back(streams_[stream].get());
  }

  bool is_large_;
  StatArray::Part part_;
  PrivatePool* owner_;
  uint16_t index_;
  std::vector<StreamPool*>& all_;
  std::vector<std::unique_ptr<StreamPool>> streams_;
};

inline void StreamPool::Insert(Block* block) {
  if (pool->lookups != 0) [[unlikely]] {
    block->Rest().gc_base = pool->lookups;
  }
  block->is_free = true;
  free.Insert(block);
}

// A private pool, of a CUDA graph or a MemPool.
struct PrivatePool {
  PrivatePool(PoolId pool_id, uint16_t pool_index, std::vector<StreamPool*>& all)
      : id(pool_id),
        index(pool_index),
        small(false, this, pool_index, all),
        large(true, this, pool_index, all) {}

  PoolId id;
  uint16_t index;
  int64_t use_count = 1;          // contexts and graphs that hold it
  int64_t cuda_malloc_count = 0;  // PyTorch's cudaMalloc_count, with its quirks
  BlockPool small;
  BlockPool large;
};

}  // namespace memreplay
