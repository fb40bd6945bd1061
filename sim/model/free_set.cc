#include "sim/model/free_set.h"

#include <algorithm>
#include <iterator>

namespace memreplay {

// The parts of these two that most calls need are short enough to keep everything in
// registers; what is rare is apart.
void FreeSet::Insert(Block* block) {
  const Key key = KeyOf(block);
  const uint32_t index = BucketOf(key.size);
  if (index >= bucket_count_) [[unlikely]] {
    AddBuckets(index + 1);
  }
  used_groups_ |= uint64_t{1} << (index / kPerGroup);
  used_[index / kPerGroup] |= uint32_t{1} << (index % kPerGroup);
  Bucket& bucket = buckets_[index];
  if (bucket.size == bucket.capacity) [[unlikely]] {
    return InsertInFull(bucket, key);
  }
  Key* const end = bucket.end();
  if (bucket.size != 0 && end[-1] < key) return InsertInside(bucket, key);
  ++bucket.size;
  *end = key;
}

void FreeSet::AddBuckets(uint32_t count) {
  auto buckets = std::make_unique<Bucket[]>(count);
  std::move(buckets_.get(), buckets_.get() + bucket_count_, buckets.get());
  buckets_ = std::move(buckets);
  bucket_count_ = count;
}

void FreeSet::InsertInside(Bucket& bucket, Key key) {
  Key* const begin = bucket.begin();
  Key* at = bucket.end();
  ++bucket.size;
  if (at - begin > kFew) {
    Key* const end = at;
    at = std::partition_point(begin, end, [&](const Key& other) { return key < other; });
    std::move_backward(at, end, end + 1);
  } else {
    for (; at != begin && at[-1] < key; --at) *at = at[-1];
  }
  *at = key;
}

void FreeSet::InsertInFull(Bucket& bucket, Key key) {
  if (bucket.tree == nullptr && bucket.size < kMostInArray) {
    bucket.capacity = std::max<uint32_t>(4, bucket.capacity * 2);
    auto keys = std::make_unique<Key[]>(bucket.capacity);
    std::copy(bucket.begin(), bucket.end(), keys.get());
    bucket.keys = std::move(keys);
    return InsertInside(bucket, key);
  }
  if (bucket.tree == nullptr) {
    bucket.tree = std::make_unique<Tree>(bucket.rbegin(), bucket.rend());
    bucket.keys.reset();
    bucket.size = bucket.capacity = 0;
  }
  bucket.tree->insert(key);
}

void FreeSet::Erase(Block* block) {
  const uint32_t index = BucketOf(block->size.value());
  Bucket& bucket = buckets_[index];
  if (bucket.size == 0) [[unlikely]] {
    if (!EraseFromTree(bucket, block)) return;
  } else {
    Key* const last = bucket.end() - 1;
    if (last->block != block) return EraseInside(bucket, block);
    if (--bucket.size != 0) return;
  }
  const uint32_t left = used_[index / kPerGroup] &= ~(uint32_t{1} << (index % kPerGroup));
  if (left == 0) used_groups_ &= ~(uint64_t{1} << (index / kPerGroup));
}

void FreeSet::EraseInside(Bucket& bucket, const Block* block) {
  Key* const last = bucket.end() - 1;
  Key* at = last - 1;
  while (at->block != block) --at;
  if (last - at > kFew) {
    std::move(at + 1, last + 1, at);
  } else {
    for (; at != last; ++at) *at = at[1];
  }
  --bucket.size;
}

bool FreeSet::EraseFromTree(Bucket& bucket, const Block* block) {
  bucket.tree->erase(KeyOf(block));
  if (!bucket.tree->empty()) return false;
  bucket.tree.reset();
  return true;
}

bool FreeSet::Contains(const Block* block) const {
  const uint32_t index = BucketOf(block->size.value());
  if (UsedFrom(index) != index) return false;
  const Bucket& here = buckets_[index];
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->find(key);
    return it != here.tree->end() && it->block == block;
  }
  const auto it = std::lower_bound(here.rbegin(), here.rend(), key);
  return it != here.rend() && it->block == block;
}

Block* FreeSet::LastUpTo(uint32_t bucket) const {
  uint32_t group = bucket / kPerGroup;
  uint32_t used = used_[group] & (~uint32_t{0} >> (kPerGroup - 1 - bucket % kPerGroup));
  if (used == 0) {
    const uint64_t groups = used_groups_ & ((uint64_t{1} << group) - 1);
    if (groups == 0) return nullptr;
    group = static_cast<uint32_t>(std::bit_width(groups)) - 1;
    used = used_[group];
  }
  return buckets_[group * kPerGroup + static_cast<uint32_t>(std::bit_width(used)) - 1].last();
}

Block* FreeSet::LowerBound(Bytes size) const {
  const uint32_t index = BucketOf(size.value());
  const uint32_t used = UsedFrom(index);
  if (used == kBuckets) return nullptr;
  const Bucket& here = buckets_[used];
  for (const Key* at = here.end(); at-- != here.begin();) {
    if (at->size >= size.value()) return at->block;
  }
  if (here.tree != nullptr) [[unlikely]] {
    const auto it = here.tree->lower_bound({size.value(), 0, nullptr});
    if (it != here.tree->end()) return it->block;
  }
  return FirstFrom(index + 1);
}

Block* FreeSet::Next(const Block* block) const {
  const uint32_t index = BucketOf(block->size.value());
  const Bucket& here = buckets_[index];
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->upper_bound(key);
    if (it != here.tree->end()) return it->block;
  } else {
    const auto it = std::upper_bound(here.rbegin(), here.rend(), key);
    if (it != here.rend()) return it->block;
  }
  return FirstFrom(index + 1);
}

Block* FreeSet::Prev(const Block* block) const {
  const uint32_t index = BucketOf(block->size.value());
  const Bucket& here = buckets_[index];
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->lower_bound(key);
    if (it != here.tree->begin()) return std::prev(it)->block;
  } else {
    const auto it = std::lower_bound(here.rbegin(), here.rend(), key);
    if (it != here.rbegin()) return std::prev(it)->block;
  }
  return index == 0 ? nullptr : LastUpTo(index - 1);
}

void FreeSet::Visit(absl::FunctionRef<void(Block*)> visit) const {
  for (uint32_t i = 0; i < bucket_count_; ++i) {
    const Bucket& here = buckets_[i];
    if (here.tree != nullptr) {
      for (const Key& key : *here.tree) visit(key.block);
    } else {
      std::for_each(here.rbegin(), here.rend(), [visit](const Key& key) { visit(key.block); });
    }
  }
}

}  // namespace memreplay
