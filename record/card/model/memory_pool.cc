#include "record/card/model/memory_pool.h"

#include <algorithm>

namespace memreplay::card {

bool MemoryPool::resize(std::uint64_t bytes) {
  if (bytes == held_) return true;
  if (page_ != 0) memory_->release_page(page_);
  page_ = bytes == 0 ? 0 : memory_->create_page(bytes);
  const bool done = bytes == 0 || page_ != 0;
  if (!done && held_ != 0) page_ = memory_->create_page(held_);
  if (done) held_ = bytes;
  most_held_ = std::max(most_held_, held_);
  return done;
}

std::uint64_t MemoryPool::allocate(std::uint64_t bytes) {
  constexpr std::uint64_t kPiece = 512;
  const std::uint64_t size = (bytes + kPiece - 1) / kPiece * kPiece;
  if (size < bytes) return 0;
  const std::uint64_t address = memory_->reserve(std::max(size, kPiece));
  if (address == 0) return 0;
  if (!resize(std::max(held_, WholeDriverUnits(used_ + size)))) {
    memory_->unreserve(address);
    return 0;
  }
  pieces_[address] = size;
  used_ += size;
  most_used_ = std::max(most_used_, used_);
  return address;
}

std::uint64_t MemoryPool::free(std::uint64_t address) {
  const auto found = pieces_.find(address);
  if (found == pieces_.end()) return 0;
  used_ -= found->second;
  pieces_.erase(found);
  trim(keep);
  return memory_->unreserve(address);
}

void MemoryPool::trim(std::uint64_t least) {
  const std::uint64_t wanted = std::max(used_, least);
  if (wanted < held_) resize(wanted == 0 ? 0 : WholeDriverUnits(wanted));
}

}  // namespace memreplay::card
