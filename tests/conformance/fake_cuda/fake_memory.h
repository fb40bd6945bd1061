// The memory of an imaginary GPU: which addresses exist, and how many bytes are left.
//
// This is the one statement of the address rule. Whatever answers for a driver in this project (the
// fake CUDA runtime of the conformance harness, the simulated device of the replayer) follows it to
// the byte:
//
//   * Everything is counted in units of 2 MiB. An allocation of n bytes takes ceil(n / 2 MiB) units
//   of address space
//     and the same number of bytes of capacity.
//   * allocate(n) answers with the lowest multiple of 2 MiB at or above kAllocationBase at which n
//   bytes are free:
//     first fit, the holes left by freed allocations included.
//   * reserve(n) answers by the same rule in a region of its own, from kReservationBase up. A
//   reservation takes
//     address space and no capacity.
//   * create_page(n) takes capacity and no address space. Its handle is a running number that is
//   never used twice.
//   * allocate and create_page fail when used + n (n in whole units) exceeds total. total itself
//   need not be a multiple
//     of 2 MiB; what is left over is never handed out, but free_bytes() counts it.
//   * external(n) is memory taken by someone else: exact bytes, no addresses. It always succeeds;
//   free_bytes() is never
//     below zero.
//   * endless(): nothing fails for want of memory; total is what the device says it has, as a
//   SimulatedDevice without a capacity does.
//   * fail_next(n): the next n calls of allocate or create_page fail, whatever room there is. Only
//   calls that reach
//     the driver count; a call that fails for want of memory uses up one of them too.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

namespace memreplay::fake {

inline constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kAllocationBase = 0x7f0000000000;
inline constexpr std::uint64_t kAllocationEnd = 0x7fff00000000;
inline constexpr std::uint64_t kReservationBase = 0x100000000000;
inline constexpr std::uint64_t kReservationEnd = 0x7e0000000000;

// First-fit ranges of address space in whole units.
class AddressSpace {
 public:
  AddressSpace(std::uint64_t base, std::uint64_t end);
  // The lowest address with room, or 0.
  std::uint64_t take(std::uint64_t bytes);
  // The size of the range that starts at `address`, in whole units; 0 if none does.
  std::uint64_t size_of(std::uint64_t address) const;
  // Gives the range back and returns its size, 0 if no range starts there.
  std::uint64_t give(std::uint64_t address);
  std::size_t count() const { return used_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;
  std::unordered_map<std::uint64_t, std::uint64_t> used_;
};

class Memory {
 public:
  explicit Memory(std::uint64_t total = std::uint64_t{80} << 30) : total_(total) {}

  std::uint64_t allocate(std::uint64_t bytes);     // 0: out of memory
  bool free(std::uint64_t address);                // false: nothing there
  std::uint64_t reserve(std::uint64_t bytes);      // 0: no address space
  bool unreserve(std::uint64_t address);           // false: nothing there
  std::uint64_t create_page(std::uint64_t bytes);  // 0: out of memory
  bool release_page(std::uint64_t handle);         // false: no such page
  void external(std::int64_t delta);
  void endless(bool on) { endless_ = on; }
  void fail_next(std::uint64_t calls) { failures_ = calls; }

  std::uint64_t total() const { return total_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t free_bytes() const;
  std::uint64_t size_of(std::uint64_t address) const { return allocations_.size_of(address); }

 private:
  bool charge(std::uint64_t bytes);

  std::uint64_t total_;
  std::uint64_t used_ = 0;  // whole units of allocations and pages
  std::uint64_t external_ = 0;
  std::uint64_t failures_ = 0;
  bool endless_ = false;
  std::uint64_t next_page_ = 1;
  AddressSpace allocations_{kAllocationBase, kAllocationEnd};
  AddressSpace reservations_{kReservationBase, kReservationEnd};
  std::unordered_map<std::uint64_t, std::uint64_t> pages_;
};

}  // namespace memreplay::fake
