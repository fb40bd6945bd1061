// The cached blocks of one stream in best-fit order: by size, then Block::order.
#ifndef MEMREPLAY_SIM_MODEL_FREE_SET_H_
#define MEMREPLAY_SIM_MODEL_FREE_SET_H_

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>

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
// A block must keep its size and order while it is in the set.
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
    uint64_t order;
    Block* block;
    // As one number: which of two comes first is hard to foretell for a branch.
    unsigned __int128 place() const { return static_cast<unsigned __int128>(size) << 64 | order; }
    friend bool operator<(const Key& a, const Key& b) { return a.place() < b.place(); }
  };
  static Key KeyOf(const Block* block) {
    return {block->size.value(), block->order, const_cast<Block*>(block)};
  }
  using Tree = absl::btree_set<Key>;
  // Holds blocks in its array or, once it has a tree, all of them in that. Before the blocks
  // of an array stands a key that comes after all others and has no block.
  struct Bucket {
    std::unique_ptr<Key[]> keys;  // descending
    Key* end = nullptr;           // of those that there are
    Key* limit = nullptr;         // of the array; end, with a tree
    std::unique_ptr<Tree> tree;
    Key* begin() const { return keys.get() + 1; }
    ptrdiff_t size() const { return keys == nullptr ? 0 : end - begin(); }
    auto rbegin() const { return std::make_reverse_iterator(end); }
    auto rend() const { return std::make_reverse_iterator(end - size()); }
    Block* first() const { return tree != nullptr ? tree->begin()->block : end[-1].block; }
    Block* last() const { return tree != nullptr ? tree->rbegin()->block : begin()->block; }
  };
  static constexpr ptrdiff_t kMostInArray = 256;
  static constexpr ptrdiff_t kFew = 8;  // as many keys are moved one by one
  static constexpr uint32_t kPerGroup = 32;
  static constexpr uint32_t kGroups = 64;
  static constexpr uint32_t kBuckets = kPerGroup * kGroups;

  static uint32_t BucketOf(uint64_t size) {
    const uint64_t units = size >> 9;  // of the smallest block
    const auto shift = static_cast<uint32_t>(std::bit_width(units | kPerGroup)) - 6;
    return kPerGroup * shift + static_cast<uint32_t>(units >> shift);  // the latter below 64
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
  void Mark(uint32_t bucket) {
    used_groups_ |= uint64_t{1} << (bucket / kPerGroup);
    used_[bucket / kPerGroup] |= uint32_t{1} << (bucket % kPerGroup);
  }
  // Without a branch, which would be hard to foretell.
  void UnmarkIf(bool empty, uint32_t bucket) {
    const uint32_t left = used_[bucket / kPerGroup] &= ~(uint32_t{empty} << (bucket % kPerGroup));
    used_groups_ &= ~(uint64_t{left == 0} << (bucket / kPerGroup));
  }
  // What few calls need, apart, so that the others need few registers.
  [[gnu::noinline, gnu::cold]] void InsertInNew(Block* block);  // there is no such bucket yet
  [[gnu::noinline, gnu::cold]] static void InsertInFull(Bucket& bucket, Block* block);
  [[gnu::noinline]] static void InsertInside(Bucket& bucket, Block* block);  // not the first
  [[gnu::noinline]] void EraseInside(Bucket& bucket, uint32_t index, const Block* block);
  [[gnu::noinline]] Block* LowerBoundBeyond(uint32_t index, uint32_t used, Bytes size) const;

  uint64_t used_groups_ = 0;
  std::array<uint32_t, kGroups> used_ = {};  // bit per bucket
  uint32_t bucket_count_ = 0;                // as far as ever used
  std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_FREE_SET_H_
