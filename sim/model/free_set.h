// The cached blocks of one stream in best-fit order: by size, then Block::tie
// (the same for all where the release knows none), then address.
#ifndef MEMREPLAY_SIM_MODEL_FREE_SET_H_
#define MEMREPLAY_SIM_MODEL_FREE_SET_H_

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "sim/model/block.h"

namespace memreplay {

// An ordered set tuned for replay, where few sizes are near each other but many
// blocks may be of one size, and the first of them comes and goes most: blocks lie
// in buckets by size (32 to a power of two, so that the bucket order is the size
// order), found through bitmaps; a bucket is an array with its first block at the
// back, and becomes a tree when many blocks gather in it.
// Visit is O(blocks); inserting and erasing move what is before the block in an
// array, everything else is O(log of the bucket) or finds the block from the back.
// A block must keep its size, tie and address while it is in the set.
class FreeSet {
 public:
  void Insert(Block* block);
  void Erase(Block* block);
  bool Contains(const Block* block) const;

  // Smallest block of at least `size` bytes, lowest address first; null if none.
  Block* LowerBound(Bytes size) const;
  // Neighbours of a block of the set in its order; null at the ends.
  Block* Next(const Block* block) const;
  Block* Prev(const Block* block) const;
  Block* First() const { return FirstFrom(0); }
  Block* Last() const { return LastUpTo(kBuckets - 1); }
  void Visit(absl::FunctionRef<void(Block*)> visit) const;

 private:
  // Of blocks of one size, as one number: which of two comes first is hard to foretell
  // for a branch.
  using Order = unsigned __int128;
  static Order OrderOf(uint64_t tie, uint64_t address) { return Order{tie} << 64 | address; }
  struct Key {
    uint64_t size;
    uint64_t tie;
    uint64_t address;
    Block* block;
    Order order() const { return OrderOf(tie, address); }
    bool IsBefore(uint64_t other_size, Order other) const {
      return size != other_size ? size < other_size : order() < other;
    }
    friend bool operator<(const Key& a, const Key& b) { return a.IsBefore(b.size, b.order()); }
  };
  static Key KeyOf(const Block* block) {
    return {block->size.value(), block->tie, block->address.value(), const_cast<Block*>(block)};
  }
  struct Bucket {
    std::vector<Key> keys;                       // descending
    std::unique_ptr<absl::btree_set<Key>> tree;  // holds everything once it exists
    Block* first() const { return tree != nullptr ? tree->begin()->block : keys.back().block; }
    Block* last() const { return tree != nullptr ? tree->rbegin()->block : keys.front().block; }
  };
  static constexpr size_t kMostInArray = 256;
  static constexpr ptrdiff_t kFew = 8;  // as many keys are moved one by one
  static constexpr uint32_t kPerGroup = 32;
  static constexpr uint32_t kGroups = 64;
  static constexpr uint32_t kBuckets = kPerGroup * kGroups;

  static uint32_t BucketOf(uint64_t size) {
    const uint64_t units = size >> 9;  // of the smallest block
    if (units < kPerGroup) return static_cast<uint32_t>(units);
    const auto shift = static_cast<uint32_t>(std::bit_width(units)) - 6;
    return kPerGroup * shift + static_cast<uint32_t>(units >> shift);  // the latter in [32, 64)
  }

  // First used bucket at or after this one; kBuckets: none.
  uint32_t UsedFrom(uint32_t bucket) const {
    uint32_t group = bucket / kPerGroup;
    uint32_t used = used_[group] >> (bucket % kPerGroup);
    if (used != 0) return bucket + static_cast<uint32_t>(std::countr_zero(used));
    const uint64_t groups = used_groups_ >> group >> 1;
    if (groups == 0) return kBuckets;
    group += 1 + static_cast<uint32_t>(std::countr_zero(groups));
    return group * kPerGroup + static_cast<uint32_t>(std::countr_zero(used_[group]));
  }
  // First block in the first used bucket at or after / last in the last at or before.
  Block* FirstFrom(uint32_t bucket) const {
    const uint32_t used = bucket < kBuckets ? UsedFrom(bucket) : kBuckets;
    return used < kBuckets ? buckets_[used].first() : nullptr;
  }
  Block* LastUpTo(uint32_t bucket) const;

  uint64_t used_groups_ = 0;
  std::array<uint32_t, kGroups> used_ = {};  // bit per bucket
  std::vector<Bucket> buckets_;              // as far as ever used
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_FREE_SET_H_
