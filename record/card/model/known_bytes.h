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
  void Add(uint64_t address, uint64_t size);
  void Forget(uint64_t address, uint64_t size);
  // Returns whether every byte of the range is known.
  bool Covers(uint64_t address, uint64_t size) const;
  size_t ranges() const { return ends_.size(); }

  // Calls known(address, size) for each known part of the range, lowest first.
  template <typename F>
  void ForEach(uint64_t address, uint64_t size, F known) const {
    const uint64_t end = address + size;
    auto range = ends_.upper_bound(address);
    if (range != ends_.begin()) --range;
    for (; range != ends_.end() && range->first < end; ++range) {
      const uint64_t from = range->first > address ? range->first : address;
      const uint64_t to = range->second < end ? range->second : end;
      if (from < to) known(from, to - from);
    }
  }

 private:
  std::map<uint64_t, uint64_t> ends_;  // start -> end; they neither touch nor overlap
};

}  // namespace memreplay::card
