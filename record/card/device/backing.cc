#include "record/card/device/backing.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "record/card/stubs/page.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace memreplay::card {
namespace {

constexpr uint64_t kChunk = uint64_t{32} << 20;

void* At(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Backing::Backing(int cards, bool simulated)
    : simulated_(simulated),
      cards_(cards),
      span_(kAll / static_cast<uint64_t>(cards) / kChunk * kChunk) {
  real_ = false;
  if (simulated_) return;
  const uint64_t size = span_ * static_cast<uint64_t>(cards_);
  void* map = mmap(At(kBase), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  real_ = map == At(kBase);
  if (!real_ && map != MAP_FAILED) munmap(map, size);  // before Linux 4.17 it may lie elsewhere
}

Memory::Regions Backing::regions(int card) const {
  if (simulated_) return kSimulatedRegions;
  const uint64_t base = kBase + span_ * static_cast<uint64_t>(card);
  // A quarter is for cudaMalloc, the rest for reservations, which are larger than what is in them.
  const uint64_t middle = base + span_ / 4 / kChunk * kChunk;
  return {base, middle, middle, base + span_};
}

void Backing::Open(uint64_t address, uint64_t size) const {
  if (real_) mprotect(At(address), size, PROT_READ | PROT_WRITE);
}

void Backing::Close(uint64_t address, uint64_t size) const {
  if (!real_) return;
  mmap(At(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
}

void Backing::Clear(uint64_t address, uint64_t size) const {
  if (!real_) return;
  const uint64_t end = address + size;
  const uint64_t from = std::min((address + kPage - 1) / kPage * kPage, end);
  const uint64_t to = std::max(end / kPage * kPage, from);
  std::memset(At(address), 0, from - address);
  if (from < to) madvise(At(from), to - from, MADV_DONTNEED);
  std::memset(At(to), 0, end - to);
}

}  // namespace memreplay::card
