#include "sim/device/chunked_addresses.h"

#include <algorithm>
#include <iterator>

#include "trace/value/check.h"

namespace memreplay {
void ChunkedAddresses::Open(Address begin, Bytes size) {
  MEMREPLAY_CHECK(HasRank(size), "more chunks opened than can be told apart");
  next_rank_ -= size.value() + kRankGap;
  chunks_.emplace(begin, Chunk{.size = size, .rank = next_rank_, .used = Bytes()});
  by_rank_.emplace(next_rank_, begin);
  holes_.Give(Address(next_rank_), size);
}

ChunkedAddresses::Chunks::iterator ChunkedAddresses::ChunkOf(Address address) {
  auto chunk = chunks_.upper_bound(address);
  MEMREPLAY_CHECK(chunk != chunks_.begin(), "an address of no chunk");
  --chunk;
  MEMREPLAY_CHECK(address < chunk->first + chunk->second.size, "an address of no chunk");
  return chunk;
}

void ChunkedAddresses::TakeAt(Address address, Bytes size) {
  const auto chunk = ChunkOf(address);
  holes_.TakeAt(Address(chunk->second.rank) + (address - chunk->first), size);
  chunk->second.used += WholeUnits(size);
}

std::optional<Address> ChunkedAddresses::Take(Bytes size) {
  if (!holes_.Fits(size)) {
    const Bytes chunk = RoundUp(WholeUnits(size), kChunk);
    if (!gaps_.Fits(chunk + AddressSpace::kUnit) || !HasRank(chunk)) return std::nullopt;
    Open(gaps_.TakeTop(chunk), chunk);
  }
  const Address hole = holes_.Take(size);
  const auto owner = std::prev(by_rank_.upper_bound(hole.value()));
  chunks_.find(owner->second)->second.used += WholeUnits(size);
  return owner->second + (hole - Address(owner->first));
}

void ChunkedAddresses::Give(Address address, Bytes size) {
  const auto at = ChunkOf(address);
  Chunk& chunk = at->second;
  holes_.Give(Address(chunk.rank) + (address - at->first), size);
  chunk.used -= WholeUnits(size);
  if (chunk.used != Bytes()) return;
  holes_.TakeAt(Address(chunk.rank), chunk.size);
  gaps_.Give(at->first, chunk.size);
  by_rank_.erase(chunk.rank);
  chunks_.erase(at);
}

}  // namespace memreplay
