// The memory of one card: which addresses exist, and how many bytes are left. The addresses have no
// bytes (those are of Backing).
//
//   * Everything is counted in units of 2 MiB. An allocation of n bytes takes ceil(n / 2 MiB) units
//     of address space and the same number of bytes of capacity.
//   * Allocate(n) answers by the card's address order (hardware/driver_addresses.h). Upwards, the
//     lowest addresses are the driver's until the first kernel.
//   * Reserve(n) answers with the lowest free address of a region of its own. A reservation takes
//     address space and no capacity.
//   * CreatePage(n) takes capacity and no address space. Its handle is a number that is never used
//     twice.
//   * Allocate and CreatePage fail when used + others + n (n in whole units) exceeds total. total
//     itself need not be a multiple of 2 MiB; the remainder is never handed out, but free_bytes()
//     counts it.
//   * TakeExternal(n) is memory that another process takes: exact bytes, no addresses. It always
//     succeeds; free_bytes() is never below zero.
//   * SetEndless(true): memory never runs out; total is what the card reports.
//   * FailNext(n): the next n calls of Allocate or CreatePage fail, whatever room there is. Only
//     calls that reach the driver count; a call that fails because memory runs out counts too.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "hardware/driver_addresses.h"

namespace memreplay::card {

// The allocations, reservations and pages of one card.
class Memory {
 public:
  struct Regions {
    uint64_t allocations, allocations_end, reservations, reservations_end;
  };
  Memory(uint64_t total, const Regions& regions, AddressOrder order,
         uint64_t below_first_kernel = 0);

  uint64_t Allocate(uint64_t bytes);     // 0: out of memory
  uint64_t Free(uint64_t address);       // its size; 0: nothing there
  uint64_t Reserve(uint64_t bytes);      // 0: no address space
  uint64_t Unreserve(uint64_t address);  // its size; 0: nothing there
  uint64_t CreatePage(uint64_t bytes);   // 0: out of memory
  bool ReleasePage(uint64_t handle);     // false: no such page
  void TakeExternal(int64_t delta);
  void FirstKernel() { addresses_.FirstKernel(); }
  void SetEndless(bool on) { endless_ = on; }
  void FailNext(uint64_t calls) { failures_ = calls; }

  uint64_t total() const { return total_; }
  uint64_t used() const { return used_; }
  uint64_t peak_used() const { return peak_used_; }
  uint64_t free_bytes() const;
  // Returns the size of the allocation at `address` in whole units; 0 if there is none.
  uint64_t SizeOf(uint64_t address) const;
  struct Allocation {
    uint64_t address, size;
  };
  // Returns the allocation that contains `address`; both are 0 if there is none.
  Allocation AllocationOf(uint64_t address) const;
  uint64_t segments() const { return segments_; }

 private:
  bool Charge(uint64_t bytes);

  uint64_t total_;
  uint64_t used_ = 0;  // whole units of allocations and pages
  uint64_t peak_used_ = 0;
  uint64_t external_ = 0;
  uint64_t failures_ = 0;
  bool endless_ = false;
  uint64_t segments_ = 0;  // successful allocations and pages so far
  uint64_t next_page_ = 1;
  DriverAddresses addresses_;
  FreeAddresses free_reservations_;
  std::map<uint64_t, uint64_t> allocations_;             // address -> size
  std::unordered_map<uint64_t, uint64_t> reservations_;  // likewise
  std::unordered_map<uint64_t, uint64_t> pages_;
};

// The addresses of memreplay's own simulated device, in the order kUpwards.
inline constexpr Memory::Regions kSimulatedRegions = {0x7f0000000000, 0x7fff00000000,
                                                      0x100000000000, 0x7e0000000000};

// A pool of the driver's stream-ordered allocator (cudaMallocAsync).

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
