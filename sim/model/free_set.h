// The cached blocks of one stream in best-fit order: by size, then Block::tie
// (the same for all where the release knows none), then address.
#ifndef MEMREPLAY_SIM_MODEL_FREE_SET_H_
#define MEMREPLAY_SIM_MODEL_FREE_SET_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "sim/model/block.h"

namespace memreplay {

// An ordered set tuned for replay, where a pool holds few blocks of any one
// size class: blocks lie in buckets by size (32 to a power of two, so that the
// bucket order is the size order), found through bitmaps; a bucket is a short
// sorted array, and becomes a tree when many blocks gather in it.
// Visit is O(blocks); inserting and erasing move what is behind the block in a
// short array, everything else is O(log of the bucket). A block must keep its
// size, tie and address while it is in the set.
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
  struct Key {
    uint64_t size;
    uint64_t tie;
    uint64_t address;
    Block* block;
    friend bool operator<(const Key& a, const Key& b) {
      if (a.size != b.size) return a.size < b.size;
      return a.tie != b.tie ? a.tie < b.tie : a.address < b.address;
    }
  };
  static Key KeyOf(const Block* block) {
    return {block->size.value(), block->tie, block->address.value(), const_cast<Block*>(block)};
  }
  struct Bucket {
    std::vector<Key> sorted;
    std::unique_ptr<absl::btree_set<Key>> tree;  // holds everything once it exists
  };
  static constexpr size_t kMostSorted = 64;
  static constexpr int kPerGroup = 32;
  static constexpr int kGroups = 64;
  static constexpr int kBuckets = kPerGroup * kGroups;
  using Group = std::array<Bucket, kPerGroup>;

  static int BucketOf(uint64_t size) {
    const uint64_t units = size >> 9;  // of the smallest block
    if (units < kPerGroup) return static_cast<int>(units);
    const int shift = 58 - __builtin_clzll(units);  // units >> shift is in [32, 64)
    return kPerGroup * (shift + 1) + static_cast<int>(units >> shift) - kPerGroup;
  }

  // First block in the first used bucket at or after / last in the last at or before.
  Block* FirstFrom(int bucket) const;
  Block* LastUpTo(int bucket) const;
  const Bucket& bucket(int index) const {
    return (*groups_[index / kPerGroup])[static_cast<size_t>(index % kPerGroup)];
  }
  bool IsUsed(int index) const { return used_[index / kPerGroup] >> (index % kPerGroup) & 1; }

  uint64_t used_groups_ = 0;
  std::array<uint32_t, kGroups> used_ = {};  // bit per bucket
  std::array<std::unique_ptr<Group>, kGroups> groups_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_FREE_SET_H_
