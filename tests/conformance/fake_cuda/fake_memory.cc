#include "fake_memory.h"

#include <iterator>

namespace memreplay::fake {
namespace {

std::uint64_t whole_units(std::uint64_t bytes) {
  if (bytes > ~std::uint64_t{0} - (kUnit - 1))
    return bytes / kUnit * kUnit;  // too large for anything anyway
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

AddressSpace::AddressSpace(std::uint64_t base, std::uint64_t end) { holes_[base] = end - base; }

std::uint64_t AddressSpace::take(std::uint64_t bytes) {
  const std::uint64_t size = whole_units(bytes == 0 ? 1 : bytes);
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < size) continue;
    const std::uint64_t address = hole->first;
    const std::uint64_t rest = hole->second - size;
    holes_.erase(hole);
    if (rest != 0) holes_[address + size] = rest;
    used_[address] = size;
    return address;
  }
  return 0;
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
  auto hole = holes_.emplace(address, size).first;
  const auto next = std::next(hole);
  if (next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    const auto before = std::prev(hole);
    if (before->first + before->second == hole->first) {
      before->second += hole->second;
      holes_.erase(hole);
    }
  }
  return size;
}

bool Memory::charge(std::uint64_t bytes) {
  if (failures_ != 0) {
    --failures_;
    return false;
  }
  if (!endless_ && bytes > free_bytes()) return false;
  used_ += bytes;
  return true;
}

std::uint64_t Memory::free_bytes() const {
  const std::uint64_t taken = used_ + external_;
  return taken >= total_ ? 0 : total_ - taken;
}

std::uint64_t Memory::allocate(std::uint64_t bytes) {
  const std::uint64_t size = whole_units(bytes == 0 ? 1 : bytes);
  if (!charge(size)) return 0;
  const std::uint64_t address = allocations_.take(size);
  if (address == 0) used_ -= size;
  return address;
}

bool Memory::free(std::uint64_t address) {
  const std::uint64_t size = allocations_.give(address);
  used_ -= size;
  return size != 0;
}

std::uint64_t Memory::reserve(std::uint64_t bytes) { return reservations_.take(bytes); }

bool Memory::unreserve(std::uint64_t address) { return reservations_.give(address) != 0; }

std::uint64_t Memory::create_page(std::uint64_t bytes) {
  const std::uint64_t size = whole_units(bytes == 0 ? 1 : bytes);
  if (!charge(size)) return 0;
  pages_[next_page_] = size;
  return next_page_++;
}

bool Memory::release_page(std::uint64_t handle) {
  const auto page = pages_.find(handle);
  if (page == pages_.end()) return false;
  used_ -= page->second;
  pages_.erase(page);
  return true;
}

void Memory::external(std::int64_t delta) {
  if (delta >= 0) {
    external_ += static_cast<std::uint64_t>(delta);
  } else {
    const auto less = static_cast<std::uint64_t>(-delta);
    external_ -= less < external_ ? less : external_;
  }
}

}  // namespace memreplay::fake
