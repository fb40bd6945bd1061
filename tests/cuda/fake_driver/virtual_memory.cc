#include "tests/cuda/fake_driver/virtual_memory.h"

#include <algorithm>
#include <iterator>

#include "cuda/verify_pattern.h"

namespace memreplay::fake {

void Content::Fill(uint64_t begin, uint64_t end, uint64_t seed, uint64_t origin) {
  auto at = stretches_.lower_bound(begin);
  if (at != stretches_.begin()) {
    const auto before = std::prev(at);
    const Stretch old = before->second;
    if (old.end > begin) {
      before->second.end = begin;
      if (old.end > end) stretches_[end] = old;
    }
  }
  while (at != stretches_.end() && at->first < end) {
    const Stretch old = at->second;
    at = stretches_.erase(at);
    if (old.end > end) stretches_[end] = old;
  }
  stretches_[begin] = Stretch{end, seed, origin};
}

std::optional<uint64_t> Content::FirstOther(uint64_t begin, uint64_t end, uint64_t seed,
                                            uint64_t origin) const {
  uint64_t good = begin;
  auto at = stretches_.upper_bound(begin);
  if (at != stretches_.begin()) --at;
  for (; good < end && at != stretches_.end(); ++at) {
    if (at->second.end <= good) continue;
    if (at->first > good || at->second.seed != seed || at->second.origin != origin) break;
    good = at->second.end;
  }
  if (good >= end) return std::nullopt;
  return good;
}

uint8_t Content::At(uint64_t offset) const {
  auto at = stretches_.upper_bound(offset);
  if (at == stretches_.begin()) return 0;
  --at;
  if (at->second.end <= offset) return 0;
  const uint64_t address = at->second.origin + offset;
  return static_cast<uint8_t>(PatternWord(at->second.seed, address / 8 * 8) >> (8 * (address % 8)));
}

bool VirtualMemory::Map(uint64_t address, const Mapping& mapping) {
  if (HasAny(address, mapping.size)) return false;
  mappings_[address] = mapping;
  return true;
}

bool VirtualMemory::HasAny(uint64_t address, uint64_t size) const {
  auto at = mappings_.lower_bound(address);
  if (at != mappings_.end() && at->first < address + size) return true;
  return at != mappings_.begin() && std::prev(at)->first + std::prev(at)->second.size > address;
}

bool VirtualMemory::SetAccessible(uint64_t address, uint64_t size) {
  const uint64_t end = address + size;
  auto at = mappings_.find(address);
  for (uint64_t next = address; next < end; ++at) {
    if (at == mappings_.end() || at->first != next) return false;
    next += at->second.size;
    if (next > end) return false;
    at->second.is_accessible = true;
  }
  return true;
}

std::optional<Mapping> VirtualMemory::Unmap(uint64_t address, uint64_t size) {
  const auto at = mappings_.find(address);
  if (at == mappings_.end() || at->second.size != size) return std::nullopt;
  Mapping mapping = at->second;
  mappings_.erase(at);
  return mapping;
}

template <typename Visit>
bool VirtualMemory::ForEach(uint64_t address, uint64_t size, Visit visit) const {
  if (size == 0) return true;
  const uint64_t end = address + size;
  auto at = mappings_.upper_bound(address);
  if (at == mappings_.begin()) return false;
  --at;
  for (uint64_t next = address; next < end; ++at) {
    if (at == mappings_.end() || at->first > next || at->first + at->second.size <= next ||
        !at->second.is_accessible) {
      return false;
    }
    const uint64_t stop = std::min(end, at->first + at->second.size);
    if (!visit(at->second, next - at->first, stop - at->first, at->first)) return true;
    next = stop;
  }
  return true;
}

bool VirtualMemory::Fill(uint64_t address, uint64_t size, uint64_t seed) {
  return ForEach(address, size,
                 [&](const Mapping& mapping, uint64_t begin, uint64_t end, uint64_t origin) {
                   mapping.content->Fill(begin, end, seed, origin);
                   return true;
                 });
}

bool VirtualMemory::Check(uint64_t address, uint64_t size, uint64_t seed,
                          uint64_t* first_bad) const {
  return ForEach(address, size,
                 [&](const Mapping& mapping, uint64_t begin, uint64_t end, uint64_t origin) {
                   const auto other = mapping.content->FirstOther(begin, end, seed, origin);
                   if (!other.has_value()) return true;
                   *first_bad = std::min(*first_bad, origin + *other - address);
                   return false;
                 });
}

bool VirtualMemory::Read(uint64_t address, uint64_t size, uint8_t* to) const {
  return ForEach(address, size,
                 [&](const Mapping& mapping, uint64_t begin, uint64_t end, uint64_t) {
                   for (uint64_t at = begin; at < end; ++at) *to++ = mapping.content->At(at);
                   return true;
                 });
}

uint64_t VirtualMemory::pages_mapped() const {
  return static_cast<uint64_t>(
      std::count_if(mappings_.begin(), mappings_.end(),
                    [](const auto& mapping) { return mapping.second.page != 0; }));
}

}  // namespace memreplay::fake
