// The memory of one card: which addresses exist, and how many bytes are left. The addresses have no
// bytes (backing.h has those).
//
//   * Everything is counted in units of 2 MiB. An allocation of n bytes takes ceil(n / 2 MiB) units
//     of address space and the same number of bytes of capacity.
//   * allocate(n) answers by the card's address order (hardware/driver_addresses.h). Upwards, the
//     lowest addresses are the driver's until the first kernel.
//   * reserve(n) answers with the lowest free address of a region of its own. A reservation takes
//     address space and no capacity.
//   * create_page(n) takes capacity and no address space. Its handle is a number that is never used
//     twice.
//   * allocate and create_page fail when used + others + n (n in whole units) exceeds total. total
//     itself need not be a multiple of 2 MiB; the remainder is never handed out, but free_bytes()
//     counts it.
//   * external(n) is memory that another process takes: exact bytes, no addresses. It always
//     succeeds; free_bytes() is never below zero.
//   * endless(true): memory never runs out; total is what the card reports.
//   * fail_next(n): the next n calls of allocate or create_page fail, whatever room there is. Only
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
    std::uint64_t allocations, allocations_end, reservations, reservations_end;
  };
  Memory(std::uint64_t total, const Regions& regions, AddressOrder order,
         std::uint64_t below_first_kernel = 0);

  std::uint64_t allocate(std::uint64_t bytes);     // 0: out of memory
  std::uint64_t free(std::uint64_t address);       // its size; 0: nothing there
  std::uint64_t reserve(std::uint64_t bytes);      // 0: no address space
  std::uint64_t unreserve(std::uint64_t address);  // its size; 0: nothing there
  std::uint64_t create_page(std::uint64_t bytes);  // 0: out of memory
  bool release_page(std::uint64_t handle);         // false: no such page
  void external(std::int64_t delta);
  void first_kernel() { addresses_.FirstKernel(); }
  void endless(bool on) { endless_ = on; }
  void fail_next(std::uint64_t calls) { failures_ = calls; }

  std::uint64_t total() const { return total_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t peak_used() const { return peak_used_; }
  std::uint64_t free_bytes() const;
  // Returns the size of the allocation at `address` in whole units; 0 if there is none.
  std::uint64_t size_of(std::uint64_t address) const;
  // Returns the allocation that contains `address`; both are 0 if there is none.
  struct Allocation {
    std::uint64_t address, size;
  };
  Allocation allocation_of(std::uint64_t address) const;
  std::uint64_t segments() const { return segments_; }

 private:
  bool charge(std::uint64_t bytes);

  std::uint64_t total_;
  std::uint64_t used_ = 0;  // whole units of allocations and pages
  std::uint64_t peak_used_ = 0;
  std::uint64_t external_ = 0;
  std::uint64_t failures_ = 0;
  bool endless_ = false;
  std::uint64_t segments_ = 0;  // successful allocations and pages so far
  std::uint64_t next_page_ = 1;
  DriverAddresses addresses_;
  FreeAddresses free_reservations_;
  std::map<std::uint64_t, std::uint64_t> allocations_;             // address -> size
  std::unordered_map<std::uint64_t, std::uint64_t> reservations_;  // likewise
  std::unordered_map<std::uint64_t, std::uint64_t> pages_;
};

// The addresses of memreplay's own simulated device, in the order kUpwards.
inline constexpr Memory::Regions kSimulatedRegions = {0x7f0000000000, 0x7fff00000000,
                                                      0x100000000000, 0x7e0000000000};

}  // namespace memreplay::card
