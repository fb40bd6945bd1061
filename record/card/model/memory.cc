#include "record/card/model/memory.h"

#include <algorithm>
#include <iterator>

namespace memreplay::card {
Memory::Memory(uint64_t total, const Regions& regions, AddressOrder order,
               uint64_t below_first_kernel)
    : total_(total),
      addresses_(regions.allocations, regions.allocations_end, order, below_first_kernel) {
  free_reservations_.Give(regions.reservations, regions.reservations_end - regions.reservations);
}

bool Memory::Charge(uint64_t bytes) {
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

uint64_t Memory::free_bytes() const {
  const uint64_t taken = used_ + external_;
  return taken >= total_ ? 0 : total_ - taken;
}

uint64_t Memory::Allocate(uint64_t bytes) {
  const uint64_t size = WholeDriverUnits(bytes);
  if (!Charge(size)) return 0;
  const auto address = addresses_.Take(size);
  if (!address.has_value()) {
    used_ -= size;
    return 0;
  }
  allocations_[*address] = size;
  return *address;
}

uint64_t Memory::Free(uint64_t address) {
  const auto allocation = allocations_.find(address);
  if (allocation == allocations_.end()) return 0;
  const uint64_t size = allocation->second;
  addresses_.Give(address, size);
  allocations_.erase(allocation);
  used_ -= size;
  return size;
}

uint64_t Memory::SizeOf(uint64_t address) const {
  const auto allocation = allocations_.find(address);
  return allocation == allocations_.end() ? 0 : allocation->second;
}

Memory::Allocation Memory::AllocationOf(uint64_t address) const {
  const auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return {};
  const auto& [begin, size] = *std::prev(next);
  return address - begin < size ? Allocation{begin, size} : Allocation{};
}

uint64_t Memory::Reserve(uint64_t bytes) {
  const uint64_t size = WholeDriverUnits(bytes);
  const auto address = free_reservations_.TakeLowest(size);
  if (!address.has_value()) return 0;
  reservations_[*address] = size;
  return *address;
}

uint64_t Memory::Unreserve(uint64_t address) {
  const auto reservation = reservations_.find(address);
  if (reservation == reservations_.end()) return 0;
  const uint64_t size = reservation->second;
  free_reservations_.Give(address, size);
  reservations_.erase(reservation);
  return size;
}

uint64_t Memory::CreatePage(uint64_t bytes) {
  const uint64_t size = WholeDriverUnits(bytes);
  if (!Charge(size)) return 0;
  pages_[next_page_] = size;
  return next_page_++;
}

bool Memory::ReleasePage(uint64_t handle) {
  const auto page = pages_.find(handle);
  if (page == pages_.end()) return false;
  used_ -= page->second;
  pages_.erase(page);
  return true;
}

void Memory::TakeExternal(int64_t delta) {
  if (delta >= 0) {
    external_ += static_cast<uint64_t>(delta);
  } else {
    const auto less = ~static_cast<uint64_t>(delta) + 1;
    external_ -= less < external_ ? less : external_;
  }
}

bool MemoryPool::Resize(uint64_t bytes) {
  if (bytes == held_) return true;
  if (page_ != 0) memory_->ReleasePage(page_);
  page_ = bytes == 0 ? 0 : memory_->CreatePage(bytes);
  const bool done = bytes == 0 || page_ != 0;
  if (!done && held_ != 0) page_ = memory_->CreatePage(held_);
  if (done) held_ = bytes;
  most_held_ = std::max(most_held_, held_);
  return done;
}

uint64_t MemoryPool::Allocate(uint64_t bytes) {
  constexpr uint64_t kPiece = 512;
  const uint64_t size = (bytes + kPiece - 1) / kPiece * kPiece;
  if (size < bytes) return 0;
  const uint64_t address = memory_->Reserve(std::max(size, kPiece));
  if (address == 0) return 0;
  if (!Resize(std::max(held_, WholeDriverUnits(used_ + size)))) {
    memory_->Unreserve(address);
    return 0;
  }
  pieces_[address] = size;
  used_ += size;
  most_used_ = std::max(most_used_, used_);
  return address;
}

uint64_t MemoryPool::Free(uint64_t address) {
  const auto found = pieces_.find(address);
  if (found == pieces_.end()) return 0;
  used_ -= found->second;
  pieces_.erase(found);
  Trim(keep);
  return memory_->Unreserve(address);
}

void MemoryPool::Trim(uint64_t least) {
  const uint64_t wanted = std::max(used_, least);
  if (wanted < held_) Resize(wanted == 0 ? 0 : WholeDriverUnits(wanted));
}

}  // namespace memreplay::card
