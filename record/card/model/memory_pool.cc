#include "record/card/model/memory_pool.h"

#include <algorithm>

namespace memreplay::card {

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
