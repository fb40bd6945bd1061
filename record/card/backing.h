// Bytes behind the cards' addresses: one reservation of address space. Nothing of it takes memory
// until it is opened and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/card/memory.h"

namespace memreplay::card {

class Backing {
 public:
  // Reserves the address space of `cards` cards. If the system refuses, there are addresses without
  // bytes and real() is false. A simulated card is one, never has bytes, and has the addresses of
  // kSimulatedRegions.
  Backing(int cards, bool simulated);

  bool real() const { return real_; }
  Memory::Regions regions(int card) const;
  // Whose address this is, -1 if it is no card's.
  int card_of(std::uint64_t address) const {
    if (simulated_) {
      const Memory::Regions& r = kSimulatedRegions;
      return (address >= r.allocations && address < r.allocations_end) ||
                     (address >= r.reservations && address < r.reservations_end)
                 ? 0
                 : -1;
    }
    return address - kBase < span_ * static_cast<std::uint64_t>(cards_)
               ? static_cast<int>((address - kBase) / span_)
               : -1;
  }
  // Makes a range readable and writable, and takes it back: its bytes are gone, its pages given
  // back.
  void open(std::uint64_t address, std::uint64_t size) const;
  void close(std::uint64_t address, std::uint64_t size) const;
  // Gives back the whole pages of an open range; they read as zero.
  void clear(std::uint64_t address, std::uint64_t size) const;

 private:
  static constexpr std::uint64_t kBase = 0x100000000000;
  static constexpr std::uint64_t kAll = 0x400000000000;  // 64 TiB for all cards

  bool simulated_;
  int cards_;
  std::uint64_t span_;
  bool real_;
};

}  // namespace memreplay::card
