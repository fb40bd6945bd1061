#include "sim/model/free_set.h"

#include <algorithm>
#include <iterator>

namespace memreplay {

void FreeSet::Insert(Block* block) {
  const uint32_t index = BucketOf(block->size.value());
  if (index >= bucket_count_) [[unlikely]] {
    return InsertInNew(block);
  }
  Mark(index);
  Bucket& bucket = buckets_[index];
  Key* const end = bucket.end;
  if (end == bucket.limit) [[unlikely]] {
    return InsertInFull(bucket, block);
  }
  if (end[-1] < KeyOf(block)) return InsertInside(bucket, block);
  bucket.end = end + 1;
  *end = KeyOf(block);
}

void FreeSet::InsertInNew(Block* block) {
  const uint32_t count = BucketOf(block->size.value()) + 1;
  auto buckets = std::make_unique<Bucket[]>(count);
  std::move(buckets_.get(), buckets_.get() + bucket_count_, buckets.get());
  buckets_ = std::move(buckets);
  bucket_count_ = count;
  Insert(block);
}

void FreeSet::InsertInside(Bucket& bucket, Block* block) {
  const Key key = KeyOf(block);
  Key* at = bucket.end++;
  if (at - bucket.begin() > kFew) {
    Key* const end = at;
    at = std::partition_point(bucket.begin(), end, [&](const Key& other) { return key < other; });
    std::move_backward(at, end, end + 1);
  } else {
    for (; at[-1] < key; --at) *at = at[-1];
  }
  *at = key;
}

void FreeSet::InsertInFull(Bucket& bucket, Block* block) {
  if (bucket.tree == nullptr && bucket.size() < kMaxInArray) {
    const ptrdiff_t size = bucket.size();
    const ptrdiff_t capacity = std::max<ptrdiff_t>(4, size * 2);
    auto keys = std::make_unique<Key[]>(static_cast<size_t>(capacity + 1));
    keys[0] = {~uint64_t{0}, ~uint64_t{0}, nullptr};
    std::copy(bucket.end - size, bucket.end, keys.get() + 1);
    bucket.keys = std::move(keys);
    bucket.end = bucket.begin() + size;
    bucket.limit = bucket.begin() + capacity;
    return InsertInside(bucket, block);
  }
  if (bucket.tree == nullptr) {
    bucket.tree = std::make_unique<Tree>(bucket.rbegin(), bucket.rend());
    bucket.end = bucket.limit = bucket.begin();
  }
  bucket.tree->insert(KeyOf(block));
}

void FreeSet::Erase(Block* block) {
  const uint32_t index = BucketOf(block->size.value());
  Bucket& bucket = buckets_[index];
  Key* const last = bucket.end - 1;
  if (last->block != block) return EraseInside(bucket, index, block);
  bucket.end = last;
  UnmarkIf(last[-1].block == nullptr, index);
}

void FreeSet::EraseInside(Bucket& bucket, uint32_t index, const Block* block) {
  if (bucket.tree != nullptr) [[unlikely]] {
    bucket.tree->erase(KeyOf(block));
    if (!bucket.tree->empty()) return;
    bucket = Bucket();
    return UnmarkIf(true, index);
  }
  Key* const last = --bucket.end;
  Key* at = last - 1;
  while (at->block != block) --at;
  if (last - at > kFew) {
    std::move(at + 1, last + 1, at);
  } else {
    for (; at != last; ++at) *at = at[1];
  }
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
  if (used == kBuckets) [[unlikely]] {
    return nullptr;
  }
  const Key* at = buckets_[used].end - 1;
  while (at->size < size.value()) --at;
  if (at->block == nullptr) [[unlikely]] {
    return LowerBoundBeyond(index, used, size);
  }
  return at->block;
}

Block* FreeSet::LowerBoundBeyond(uint32_t index, uint32_t used, Bytes size) const {
  if (const Bucket& here = buckets_[used]; here.tree != nullptr) {
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
