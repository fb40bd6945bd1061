#include "sim/model/free_set.h"

#include <algorithm>
#include <iterator>

namespace memreplay {

void FreeSet::Insert(Block* block) {
  const uint64_t size = block->size.value();
  const uint32_t index = BucketOf(size);
  if (index >= buckets_.size()) [[unlikely]] {
    buckets_.resize(index + 1);
  }
  Bucket& bucket = buckets_[index];
  used_groups_ |= uint64_t{1} << (index / kPerGroup);
  used_[index / kPerGroup] |= uint32_t{1} << (index % kPerGroup);
  if (bucket.tree != nullptr) [[unlikely]] {
    bucket.tree->insert(KeyOf(block));
    return;
  }
  const Order order = OrderOf(block->tie, block->address.value());
  bucket.keys.emplace_back();
  Key* const begin = bucket.keys.data();
  Key* at = &bucket.keys.back();
  if (at - begin > kFew) {
    Key* const end = at;
    at = std::partition_point(begin, end,
                              [&](const Key& key) { return !key.IsBefore(size, order); });
    std::move_backward(at, end, end + 1);
  } else {
    for (; at != begin && at[-1].IsBefore(size, order); --at) *at = at[-1];
  }
  // One by one: a key put together first would be read before it has been written.
  at->size = size;
  at->tie = block->tie;
  at->address = block->address.value();
  at->block = block;
  if (bucket.keys.size() > kMostInArray) [[unlikely]] {
    bucket.tree = std::make_unique<absl::btree_set<Key>>(bucket.keys.rbegin(), bucket.keys.rend());
    bucket.keys = {};
  }
}

void FreeSet::Erase(Block* block) {
  const uint32_t index = BucketOf(block->size.value());
  Bucket& bucket = buckets_[index];
  bool empty;
  if (bucket.tree != nullptr) [[unlikely]] {
    bucket.tree->erase(KeyOf(block));
    empty = bucket.tree->empty();
    if (empty) bucket.tree.reset();
  } else {
    Key* const last = &bucket.keys.back();
    Key* at = last;
    while (at->block != block) --at;
    if (last - at > kFew) {
      std::move(at + 1, last + 1, at);
    } else {
      for (; at != last; ++at) *at = at[1];
    }
    bucket.keys.pop_back();
    empty = bucket.keys.empty();
  }
  if (empty) {
    const uint32_t left = used_[index / kPerGroup] &= ~(uint32_t{1} << (index % kPerGroup));
    if (left == 0) used_groups_ &= ~(uint64_t{1} << (index / kPerGroup));
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
  const auto it = std::lower_bound(here.keys.rbegin(), here.keys.rend(), key);
  return it != here.keys.rend() && it->block == block;
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
  if (here.tree != nullptr) [[unlikely]] {
    const auto it = here.tree->lower_bound({size.value(), 0, 0, nullptr});
    if (it != here.tree->end()) return it->block;
  } else {
    for (auto it = here.keys.rbegin(); it != here.keys.rend(); ++it) {
      if (it->size >= size.value()) return it->block;
    }
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
    const auto it = std::upper_bound(here.keys.rbegin(), here.keys.rend(), key);
    if (it != here.keys.rend()) return it->block;
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
    const auto it = std::lower_bound(here.keys.rbegin(), here.keys.rend(), key);
    if (it != here.keys.rbegin()) return std::prev(it)->block;
  }
  return index == 0 ? nullptr : LastUpTo(index - 1);
}

void FreeSet::Visit(absl::FunctionRef<void(Block*)> visit) const {
  for (const Bucket& here : buckets_) {
    if (here.tree != nullptr) {
      for (const Key& key : *here.tree) visit(key.block);
    } else {
      std::for_each(here.keys.rbegin(), here.keys.rend(),
                    [visit](const Key& key) { visit(key.block); });
    }
  }
}

}  // namespace memreplay
