#include "record/card/model/known_bytes.h"

#include <iterator>

namespace memreplay::card {

void KnownBytes::Add(uint64_t address, uint64_t size) {
  if (size == 0) return;
  uint64_t end = address + size;
  auto range = ends_.upper_bound(address);
  if (range != ends_.begin() && std::prev(range)->second >= address) {
    --range;
    if (range->second >= end) return;
    address = range->first;
  }
  while (range != ends_.end() && range->first <= end) {
    if (range->second > end) end = range->second;
    range = ends_.erase(range);
  }
  ends_[address] = end;
}

void KnownBytes::Forget(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  auto range = ends_.upper_bound(address);
  if (range != ends_.begin()) --range;
  while (range != ends_.end() && range->first < end) {
    const auto [from, to] = *range;
    if (to <= address) {
      ++range;
      continue;
    }
    range = ends_.erase(range);
    if (from < address) ends_[from] = address;
    if (to > end) ends_[end] = to;
  }
}

bool KnownBytes::Covers(uint64_t address, uint64_t size) const {
  if (size == 0) return true;
  auto range = ends_.upper_bound(address);
  return range != ends_.begin() && std::prev(range)->second - address >= size &&
         std::prev(range)->second > address;
}

}  // namespace memreplay::card
