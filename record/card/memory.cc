#include "record/card/memory.h"

namespace memreplay::card {

Memory::Memory(std::uint64_t total, const Regions& regions, AddressOrder order)
    : total_(total),
      allocations_(regions.allocations, regions.allocations_end, order),
      reservations_(regions.reservations, regions.reservations_end, AddressOrder::kUpwards) {}

bool Memory::charge(std::uint64_t bytes) {
  if (failures_ != 0) {
    --failures_;
    return false;
  }
  if (!endless_ && bytes > free_bytes()) return false;
  used_ += bytes;
  if (used_ > peak_used_) peak_used_ = used_;
  ++segments_;
  return true;
}

std::uint64_t Memory::free_bytes() const {
  const std::uint64_t taken = used_ + external_;
  return taken >= total_ ? 0 : total_ - taken;
}

std::uint64_t Memory::allocate(std::uint64_t bytes) {
  const std::uint64_t size = WholeUnits(bytes);
  if (!charge(size)) return 0;
  const std::uint64_t address = allocations_.take(size);
  if (address == 0) used_ -= size;
  return address;
}

std::uint64_t Memory::free(std::uint64_t address) {
  const std::uint64_t size = allocations_.give(address);
  used_ -= size;
  return size;
}

std::uint64_t Memory::reserve(std::uint64_t bytes) { return reservations_.take(bytes); }

std::uint64_t Memory::unreserve(std::uint64_t address) { return reservations_.give(address); }

std::uint64_t Memory::create_page(std::uint64_t bytes) {
  const std::uint64_t size = WholeUnits(bytes);
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
    const auto less = ~static_cast<std::uint64_t>(delta) + 1;
    external_ -= less < external_ ? less : external_;
  }
}

}  // namespace memreplay::card
