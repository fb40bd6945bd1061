// The bytes behind the cards' addresses: one reservation of address space. No part of it takes
// memory until it is opened and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/card/model/memory.h"

namespace memreplay::card {

// The address space of all cards of a process.
class Backing {
 public:
  // Reserves the address space of `cards` cards. If the system denies it, addresses have no bytes
  // and real() is false. A simulated device is a single card that never has bytes and has the
  // addresses of kSimulatedRegions.
  Backing(int cards, bool simulated);

  bool real() const { return real_; }
  Memory::Regions regions(int card) const;
  // Returns the card that has this address, or -1 if none does.
  int CardOf(uint64_t address) const {
    if (simulated_) {
      const Memory::Regions& r = kSimulatedRegions;
      return (address >= r.allocations && address < r.allocations_end) ||
                     (address >= r.reservations && address < r.reservations_end)
                 ? 0
                 : -1;
    }
    return address - kBase < span_ * static_cast<uint64_t>(cards_)
               ? static_cast<int>((address - kBase) / span_)
               : -1;
  }
  // Makes a range readable and writable.
  void Open(uint64_t address, uint64_t size) const;
  // Closes a range: its bytes are lost and its pages released.
  void Close(uint64_t address, uint64_t size) const;
  // Fills an open range with zeros and releases its whole pages.
  void Clear(uint64_t address, uint64_t size) const;

 private:
  static constexpr uint64_t kBase = 0x100000000000;
  static constexpr uint64_t kAll = 0x400000000000;  // 64 TiB for all cards

  bool simulated_;
  int cards_;
  uint64_t span_;
  bool real_;
};

}  // namespace memreplay::card
