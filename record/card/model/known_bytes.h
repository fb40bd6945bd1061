// Records which bytes of the card hold a value that a known operation wrote. All others are
// unknown: a kernel may have written anything there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace memreplay::card {

// A set of address ranges.
class KnownBytes {
 public:
  void add(std::uint64_t address, std::uint64_t size);
  void forget(std::uint64_t address, std::uint64_t size);
  // Returns whether every byte of the range is known.
  bool covers(std::uint64_t address, std::uint64_t size) const;
  std::size_t ranges() const { return ends_.size(); }

  // Calls known(address, size) for each known part of the range, lowest first.
  template <typename F>
  void for_each(std::uint64_t address, std::uint64_t size, F known) const {
    const std::uint64_t end = address + size;
    auto range = ends_.upper_bound(address);
    if (range != ends_.begin()) --range;
    for (; range != ends_.end() && range->first < end; ++range) {
      const std::uint64_t from = range->first > address ? range->first : address;
      const std::uint64_t to = range->second < end ? range->second : end;
      if (from < to) known(from, to - from);
    }
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // start -> end; they neither touch nor overlap
};

}  // namespace memreplay::card
