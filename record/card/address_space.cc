#include "record/card/address_space.h"

#include <iterator>

namespace memreplay::card {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{32} << 20;

}  // namespace

std::uint64_t WholeUnits(std::uint64_t bytes) {
  if (bytes == 0) return kUnit;
  if (bytes > ~std::uint64_t{0} - (kUnit - 1)) return bytes / kUnit * kUnit;  // more than any card
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

std::uint64_t Holes::take_lowest(std::uint64_t size) {
  for (auto hole = sizes_.begin(); hole != sizes_.end(); ++hole) {
    if (hole->second < size) continue;
    const auto [address, whole] = *hole;
    sizes_.erase(hole);
    if (whole != size) sizes_[address + size] = whole - size;
    return address;
  }
  return 0;
}

std::uint64_t Holes::take_highest(std::uint64_t size, std::uint64_t alignment) {
  for (auto hole = sizes_.end(); hole != sizes_.begin();) {
    --hole;
    const auto [start, whole] = *hole;
    if (whole < size) continue;
    const std::uint64_t address = (start + whole - size) / alignment * alignment;
    if (address < start) continue;
    sizes_.erase(hole);
    if (address != start) sizes_[start] = address - start;
    if (address + size != start + whole) sizes_[address + size] = start + whole - address - size;
    return address;
  }
  return 0;
}

void Holes::give(std::uint64_t address, std::uint64_t size) {
  auto hole = sizes_.emplace(address, size).first;
  const auto next = std::next(hole);
  if (next != sizes_.end() && address + size == next->first) {
    hole->second += next->second;
    sizes_.erase(next);
  }
  if (hole == sizes_.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second == address) {
    before->second += hole->second;
    sizes_.erase(hole);
  }
}

bool Holes::all_free(std::uint64_t address, std::uint64_t size) const {
  const auto hole = sizes_.find(address);
  return hole != sizes_.end() && hole->second == size;
}

AddressSpace::AddressSpace(std::uint64_t base, std::uint64_t end, AddressOrder order)
    : order_(order) {
  holes_.give(base, end - base);
}

std::uint64_t AddressSpace::take(std::uint64_t bytes) {
  const std::uint64_t size = WholeUnits(bytes);
  const std::uint64_t address =
      order_ == AddressOrder::kUpwards ? holes_.take_lowest(size) : take_from_chunks(size);
  if (address != 0) used_[address] = size;
  return address;
}

std::uint64_t AddressSpace::take_from_chunks(std::uint64_t size) {
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    if (const std::uint64_t address = chunk->holes.take_lowest(size)) return address;
  }
  const std::uint64_t whole = (size + kChunk - 1) / kChunk * kChunk;
  const std::uint64_t base = holes_.take_highest(whole, kChunk);
  if (base == 0) return 0;
  chunks_.push_back({base, whole, {}});
  if (whole != size) chunks_.back().holes.give(base + size, whole - size);
  return base;
}

std::uint64_t AddressSpace::size_of(std::uint64_t address) const {
  const auto range = used_.find(address);
  return range == used_.end() ? 0 : range->second;
}

std::uint64_t AddressSpace::give(std::uint64_t address) {
  const auto range = used_.find(address);
  if (range == used_.end()) return 0;
  const std::uint64_t size = range->second;
  used_.erase(range);
  if (order_ == AddressOrder::kUpwards) {
    holes_.give(address, size);
  } else {
    give_to_chunk(address, size);
  }
  return size;
}

void AddressSpace::give_to_chunk(std::uint64_t address, std::uint64_t size) {
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    if (address < chunk->base || address - chunk->base >= chunk->size) continue;
    chunk->holes.give(address, size);
    if (chunk->holes.all_free(chunk->base, chunk->size)) {
      holes_.give(chunk->base, chunk->size);
      chunks_.erase(chunk);
    }
    return;
  }
}

}  // namespace memreplay::card
