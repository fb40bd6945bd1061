#include "sim/model/free_set.h"

#include <algorithm>

namespace memreplay {

void FreeSet::Insert(Block* block) {
  const int index = BucketOf(block->size.value());
  const int group = index / kPerGroup;
  if (groups_[group] == nullptr) groups_[group] = std::make_unique<Group>();
  Bucket& bucket = (*groups_[group])[static_cast<size_t>(index % kPerGroup)];
  used_groups_ |= uint64_t{1} << group;
  used_[group] |= uint32_t{1} << (index % kPerGroup);
  const Key key = KeyOf(block);
  if (bucket.tree != nullptr) {
    bucket.tree->insert(key);
    return;
  }
  bucket.sorted.insert(std::upper_bound(bucket.sorted.begin(), bucket.sorted.end(), key), key);
  if (bucket.sorted.size() > kMostSorted) {
    bucket.tree =
        std::make_unique<absl::btree_set<Key>>(bucket.sorted.begin(), bucket.sorted.end());
    bucket.sorted = {};
  }
}

void FreeSet::Erase(Block* block) {
  const int index = BucketOf(block->size.value());
  const int group = index / kPerGroup;
  Bucket& bucket = (*groups_[group])[static_cast<size_t>(index % kPerGroup)];
  bool empty;
  if (bucket.tree != nullptr) {
    bucket.tree->erase(KeyOf(block));
    empty = bucket.tree->empty();
    if (empty) bucket.tree.reset();
  } else {
    auto it = bucket.sorted.begin();
    while (it->block != block) ++it;
    bucket.sorted.erase(it);
    empty = bucket.sorted.empty();
  }
  if (empty) {
    used_[group] &= ~(uint32_t{1} << (index % kPerGroup));
    if (used_[group] == 0) used_groups_ &= ~(uint64_t{1} << group);
  }
}

bool FreeSet::Contains(const Block* block) const {
  const int index = BucketOf(block->size.value());
  if (!IsUsed(index)) return false;
  const Bucket& here = bucket(index);
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->find(key);
    return it != here.tree->end() && it->block == block;
  }
  const auto it = std::lower_bound(here.sorted.begin(), here.sorted.end(), key);
  return it != here.sorted.end() && it->block == block;
}

Block* FreeSet::FirstFrom(int index) const {
  if (index >= kBuckets) return nullptr;
  int group = index / kPerGroup;
  uint32_t used = used_[group] & (~uint32_t{0} << (index % kPerGroup));
  if (used == 0) {
    const uint64_t groups = group + 1 < kGroups ? used_groups_ >> (group + 1) << (group + 1) : 0;
    if (groups == 0) return nullptr;
    group = __builtin_ctzll(groups);
    used = used_[group];
  }
  const Bucket& found = (*groups_[group])[static_cast<size_t>(__builtin_ctz(used))];
  return found.tree != nullptr ? found.tree->begin()->block : found.sorted.front().block;
}

Block* FreeSet::LastUpTo(int index) const {
  if (index < 0) return nullptr;
  int group = index / kPerGroup;
  uint32_t used = used_[group] & (~uint32_t{0} >> (kPerGroup - 1 - index % kPerGroup));
  if (used == 0) {
    const uint64_t groups = used_groups_ & ((uint64_t{1} << group) - 1);
    if (groups == 0) return nullptr;
    group = 63 - __builtin_clzll(groups);
    used = used_[group];
  }
  const Bucket& found = (*groups_[group])[static_cast<size_t>(31 - __builtin_clz(used))];
  return found.tree != nullptr ? found.tree->rbegin()->block : found.sorted.back().block;
}

Block* FreeSet::LowerBound(Bytes size) const {
  const int index = BucketOf(size.value());
  if (IsUsed(index)) {
    const Bucket& here = bucket(index);
    const Key key{size.value(), 0, 0, nullptr};
    if (here.tree != nullptr) {
      const auto it = here.tree->lower_bound(key);
      if (it != here.tree->end()) return it->block;
    } else {
      for (const Key& candidate : here.sorted) {
        if (candidate.size >= size.value()) return candidate.block;
      }
    }
  }
  return FirstFrom(index + 1);
}

Block* FreeSet::Next(const Block* block) const {
  const int index = BucketOf(block->size.value());
  const Bucket& here = bucket(index);
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->upper_bound(key);
    if (it != here.tree->end()) return it->block;
  } else {
    const auto it = std::upper_bound(here.sorted.begin(), here.sorted.end(), key);
    if (it != here.sorted.end()) return it->block;
  }
  return FirstFrom(index + 1);
}

Block* FreeSet::Prev(const Block* block) const {
  const int index = BucketOf(block->size.value());
  const Bucket& here = bucket(index);
  const Key key = KeyOf(block);
  if (here.tree != nullptr) {
    const auto it = here.tree->lower_bound(key);
    if (it != here.tree->begin()) return std::prev(it)->block;
  } else {
    const auto it = std::lower_bound(here.sorted.begin(), here.sorted.end(), key);
    if (it != here.sorted.begin()) return std::prev(it)->block;
  }
  return LastUpTo(index - 1);
}

void FreeSet::Visit(absl::FunctionRef<void(Block*)> visit) const {
  for (uint64_t groups = used_groups_; groups != 0; groups &= groups - 1) {
    const int group = __builtin_ctzll(groups);
    for (uint32_t used = used_[group]; used != 0; used &= used - 1) {
      const Bucket& here = (*groups_[group])[static_cast<size_t>(__builtin_ctz(used))];
      if (here.tree != nullptr) {
        for (const Key& key : *here.tree) visit(key.block);
      } else {
        for (const Key& key : here.sorted) visit(key.block);
      }
    }
  }
}

}  // namespace memreplay
