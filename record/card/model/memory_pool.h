// A pool of the driver's stream-ordered allocator (cudaMallocAsync).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "record/card/model/memory.h"

namespace memreplay::card {

// Memory of a card that is handed out in pieces of 512 bytes. The pool takes whole units of 2 MiB
// of the card, as many as the live pieces need without holes; it keeps up to `keep` bytes that are
// free. A piece is free as soon as it is freed, whatever its stream does. Both are assumptions: the
// driver's own rules are not published.
class MemoryPool {
 public:
  explicit MemoryPool(Memory* memory) : memory_(memory) {}

  uint64_t Allocate(uint64_t bytes);  // 0: out of memory
  uint64_t Free(uint64_t address);    // its address space in bytes; 0: nothing there
  // Returns free memory to the card until the pool has no more than `keep` bytes, if that is
  // possible.
  void Trim(uint64_t keep);

  uint64_t keep = 0;  // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
  uint64_t used() const { return used_; }
  uint64_t most_used() const { return most_used_; }
  uint64_t held() const { return held_; }
  uint64_t most_held() const { return most_held_; }

 private:
  bool Resize(uint64_t bytes);

  Memory* memory_;
  uint64_t page_ = 0;  // one page of all that the pool holds
  uint64_t used_ = 0, most_used_ = 0;
  uint64_t held_ = 0, most_held_ = 0;
  std::unordered_map<uint64_t, uint64_t> pieces_;  // address -> size
};

}  // namespace memreplay::card
