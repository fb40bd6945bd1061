// Which addresses of a card are taken, and where the next allocation lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

// Allocations are counted in units of 2 MiB, as the driver maps them.
inline constexpr std::uint64_t kUnit = std::uint64_t{2} << 20;

// `bytes` in whole units, at least one.
std::uint64_t WholeUnits(std::uint64_t bytes);

enum class AddressOrder {
  // The lowest address with room, holes of freed allocations included. What recordings made on
  // Windows and WSL show, and the rule of memreplay's own simulated device.
  kUpwards,
  // What recordings made on Linux show: space is opened in chunks of whole multiples of 32 MiB,
  // aligned at 32 MiB, mostly below the last one. An allocation takes the lowest hole of the newest
  // chunk that has room, and opens a chunk where none has. A chunk that is all free is closed.
  kChunks,
};

// Free ranges by address; neighbours are merged.
class Holes {
 public:
  // The lowest address with `size` bytes, or 0.
  std::uint64_t take_lowest(std::uint64_t size);
  // The highest multiple of `alignment` with `size` bytes, or 0.
  std::uint64_t take_highest(std::uint64_t size, std::uint64_t alignment);
  void give(std::uint64_t address, std::uint64_t size);
  // Whether the range is one hole.
  bool all_free(std::uint64_t address, std::uint64_t size) const;

 private:
  std::map<std::uint64_t, std::uint64_t> sizes_;
};

class AddressSpace {
 public:
  AddressSpace(std::uint64_t base, std::uint64_t end, AddressOrder order);

  // An address of `bytes` in whole units, or 0 if there is no room.
  std::uint64_t take(std::uint64_t bytes);
  // The size of the range that starts at `address`, in whole units; 0 if none does.
  std::uint64_t size_of(std::uint64_t address) const;
  // Gives the range back and returns its size, 0 if no range starts there.
  std::uint64_t give(std::uint64_t address);
  std::size_t count() const { return used_.size(); }

 private:
  struct Chunk {
    std::uint64_t base, size;
    Holes holes;
  };

  std::uint64_t take_from_chunks(std::uint64_t size);
  void give_to_chunk(std::uint64_t address, std::uint64_t size);

  AddressOrder order_;
  Holes holes_;
  std::vector<Chunk> chunks_;  // oldest first; only with kChunks
  std::unordered_map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace memreplay::card
