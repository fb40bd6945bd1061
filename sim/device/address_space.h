// Ranges of device addresses, some of them handed out: by default the lowest free
// piece, first fit, the holes left by returned pieces included.
#ifndef MEMREPLAY_SIM_DEVICE_ADDRESS_SPACE_H_
#define MEMREPLAY_SIM_DEVICE_ADDRESS_SPACE_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "trace/value/units.h"

namespace memreplay {

// Counts in whole units of kUnit: every size is rounded up, every address is a
// multiple of it as long as the given ranges begin at one. Take and Give are
// O(log holes); a mistaken Give (not taken, or overlapping a hole) stops the
// process.
class AddressSpace {
 public:
  static constexpr Bytes kUnit = MiB(2);
  struct Range {
    Address begin;
    Address end;
  };

  // `ranges` ascending and apart from each other.
  AddressSpace(std::initializer_list<Range> ranges);

  // The lowest address at which `size` bytes are free. `size` must not exceed
  // what a range can hold.
  Address Take(Bytes size);
  // The top of the highest hole that is larger than `size`; there must be one.
  Address TakeTop(Bytes size);
  // Those very addresses, which must be free.
  void TakeAt(Address address, Bytes size);
  // May be a range that was not there before.
  void Give(Address address, Bytes size);

  // Take(size) finds a hole; TakeTop(size) does if Fits(size + kUnit).
  bool Fits(Bytes size) const;
  size_t hole_count() const { return hole_count_; }

 private:
  // The holes, as a treap by address that knows the largest hole below each
  // node. Priorities come from a fixed sequence: same calls, same shape.
  struct Node {
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t largest = 0;  // in the subtree
    uint64_t priority = 0;
    uint32_t left = 0;  // 0 = none; node 0 is the sentinel of size 0
    uint32_t right = 0;
  };

  uint32_t NewHole(uint64_t address, uint64_t size);
  void DropHole(uint32_t node);
  void Update(uint32_t node);
  uint32_t Merge(uint32_t left, uint32_t right);
  // Holes below `address` to *left, the others to *right.
  void Split(uint32_t node, uint64_t address, uint32_t* left, uint32_t* right);
  // Takes [begin, begin + need) out of the hole that begins at `hole`.
  void Cut(uint64_t hole, uint64_t begin, uint64_t need);

  std::vector<Node> nodes_;
  std::vector<uint32_t> spare_;  // node numbers to use again
  uint32_t root_ = 0;
  size_t hole_count_ = 0;
  uint64_t priority_state_ = 0;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_DEVICE_ADDRESS_SPACE_H_
