// The cached blocks of one stream in best-fit order: by size, then Block::order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "sim/model/block.h"

namespace memreplay {

// An ordered set tuned for replay, where few sizes are close to each other but many blocks may have
// the same size, and the first of them is inserted and erased most often. Blocks lie in buckets by
// size (32 per power of two, so that the bucket order is the size order), which are found through
// bitmaps. A bucket is an array with its first block at the back and becomes a tree when it holds
// many blocks. Visit is O(blocks); inserting and erasing move the blocks before the block in an
// array; everything else is O(log of the bucket) or finds the block from the back. A block must
// keep its size and order while it is in the set.
class FreeSet {
 public:
  void Insert(Block* block);
  void Erase(Block* block);
  bool Contains(const Block* block) const;

  // Returns the smallest block of at least `size` bytes, the lowest address first, or null.
  Block* LowerBound(Bytes size) const;
  // Return the neighbours of a block in the order of the set, or null at the ends.
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
    // Returns the key as one number, because a branch on the order of two keys is hard to predict.
    unsigned __int128 place() const { return static_cast<unsigned __int128>(size) << 64 | order; }
    friend bool operator<(const Key& a, const Key& b) { return a.place() < b.place(); }
  };
  static Key KeyOf(const Block* block) {
    return {block->size.value(), block->order, const_cast<Block*>(block)};
  }
  using Tree = absl::btree_set<Key>;
  // A list of blocks of similar size: an array or, with many blocks, a tree. The blocks of an array
  // are preceded by a key that is greater than all others and has no block.
  struct Bucket {
    std::unique_ptr<Key[]> keys;  // descending
    Key* end = nullptr;           // of the keys in use
    Key* limit = nullptr;         // end of the array; equals `end` if there is a tree
    std::unique_ptr<Tree> tree;
    Key* begin() const { return keys.get() + 1; }
    ptrdiff_t size() const { return keys == nullptr ? 0 : end - begin(); }
    auto rbegin() const { return std::make_reverse_iterator(end); }
    auto rend() const { return std::make_reverse_iterator(end - size()); }
    Block* first() const { return tree != nullptr ? tree->begin()->block : end[-1].block; }
    Block* last() const { return tree != nullptr ? tree->rbegin()->block : begin()->block; }
  };
  static constexpr ptrdiff_t kMaxInArray = 256;
  static constexpr ptrdiff_t kFew = 8;  // up to this many keys are moved one by one
  static constexpr uint32_t kPerGroup = 32;
  static constexpr uint32_t kGroups = 64;
  static constexpr uint32_t kBuckets = kPerGroup * kGroups;

  static uint32_t BucketOf(uint64_t size) {
    const uint64_t units = size >> 9;  // of 512 bytes, the smallest block
    const auto shift = static_cast<uint32_t>(std::bit_width(units | kPerGroup)) - 6;
    return kPerGroup * shift + static_cast<uint32_t>(units >> shift);  // the latter below 64
  }

  // Returns the first used bucket at or after this one, or kBuckets.
  uint32_t UsedFrom(uint32_t bucket) const {
    uint32_t group = bucket / kPerGroup;
    uint32_t used = used_[group] >> (bucket % kPerGroup);
    if (used != 0) return bucket + static_cast<uint32_t>(std::countr_zero(used));
    const uint64_t groups = used_groups_ >> group >> 1;
    if (groups == 0) return kBuckets;
    group += 1 + static_cast<uint32_t>(std::countr_zero(groups));
    return group * kPerGroup + static_cast<uint32_t>(std::countr_zero(used_[group]));
  }
  // Return the first block of the first used bucket at or after this one, and the last block of the
  // last used bucket at or before it.
  Block* FirstFrom(uint32_t bucket) const {
    const uint32_t used = bucket < kBuckets ? UsedFrom(bucket) : kBuckets;
    return used < kBuckets ? buckets_[used].first() : nullptr;
  }
  Block* LastUpTo(uint32_t bucket) const;
  void Mark(uint32_t bucket) {
    used_groups_ |= uint64_t{1} << (bucket / kPerGroup);
    used_[bucket / kPerGroup] |= uint32_t{1} << (bucket % kPerGroup);
  }
  // Clears the bit without a branch, which would be hard to predict.
  void UnmarkIf(bool empty, uint32_t bucket) {
    const uint32_t left = used_[bucket / kPerGroup] &= ~(uint32_t{empty} << (bucket % kPerGroup));
    used_groups_ &= ~(uint64_t{left == 0} << (bucket / kPerGroup));
  }
  // Handle the rare cases separately, so that the common ones need few registers.
  [[gnu::noinline, gnu::cold]] void InsertInNew(Block* block);  // its bucket does not exist yet
  [[gnu::noinline, gnu::cold]] static void InsertInFull(Bucket& bucket, Block* block);
  [[gnu::noinline]] static void InsertInside(Bucket& bucket, Block* block);  // not as the first
  [[gnu::noinline]] void EraseInside(Bucket& bucket, uint32_t index, const Block* block);
  [[gnu::noinline]] Block* LowerBoundBeyond(uint32_t index, uint32_t used, Bytes size) const;

  uint64_t used_groups_ = 0;
  std::array<uint32_t, kGroups> used_ = {};  // bit per bucket
  uint32_t bucket_count_ = 0;                // includes all ever used
  std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace memreplay
