// Where cudaMalloc puts segments on Linux, as far as recordings show it.
#ifndef MEMREPLAY_SIM_DEVICE_CHUNKED_ADDRESSES_H_
#define MEMREPLAY_SIM_DEVICE_CHUNKED_ADDRESSES_H_

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "absl/container/btree_map.h"
#include "sim/device/address_space.h"
#include "trace/value/units.h"

namespace memreplay {

// The rule, learnt from public recordings (docs/fidelity.md tells how often it holds):
//   * A segment goes into the newest chunk that has room for it, to the lowest hole there.
//   * Without one, a chunk is opened: the segment's size rounded up to 32 MiB, at the top of
//     the highest gap between chunks that is larger than that.
//   * A chunk with nothing left in it goes back to the system.
// Sizes count in whole units of 2 MiB. Each call is O(log of holes and chunks).
class ChunkedAddresses {
 public:
  static constexpr Bytes kChunk = MiB(32);

  // Of these addresses, both multiples of kChunk.
  explicit ChunkedAddresses(AddressSpace::Range range) : gaps_({range}) {}

  // Nullopt: no gap is large enough.
  std::optional<Address> Take(Bytes size);
  void Give(Address address, Bytes size);

  // A chunk of `size` (a multiple of kChunk) at `begin`, newer than those before, free of
  // segments until TakeAt(). The addresses must not be those of the range.
  void Open(Address begin, Bytes size);
  void TakeAt(Address address, Bytes size);

 private:
  struct Chunk {
    Bytes size;
    uint64_t rank = 0;  // where its holes are in holes_
    Bytes used;
  };
  using Chunks = absl::btree_map<Address, Chunk>;

  Chunks::iterator ChunkOf(Address address);
  // Ranks left for newer chunks.
  bool HasRank(Bytes size) const { return next_rank_ > size.value() + kRankGap; }
  static constexpr uint64_t kRankGap = AddressSpace::kUnit.value();

  AddressSpace gaps_;  // between chunks
  // The holes of all chunks, each chunk's moved to its rank: the newer a chunk the lower,
  // so that the first hole that fits is the one to take.
  AddressSpace holes_{std::initializer_list<AddressSpace::Range>{}};
  uint64_t next_rank_ = uint64_t{1} << 62;
  Chunks chunks_;                               // by address
  absl::btree_map<uint64_t, Address> by_rank_;  // begin of the chunk
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_DEVICE_CHUNKED_ADDRESSES_H_
