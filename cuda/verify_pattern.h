// The pattern that fills a verified block, shared by the kernel, the host and the fake driver of
// the tests.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMREPLAY_HOST_DEVICE __host__ __device__
#else
#define MEMREPLAY_HOST_DEVICE
#endif

namespace memreplay {

inline constexpr char kFillKernel[] = "memreplay_fill";
inline constexpr char kCheckKernel[] = "memreplay_check";
inline constexpr uint64_t kNothingBad = ~uint64_t{0};

MEMREPLAY_HOST_DEVICE constexpr uint64_t PatternOfAddress(uint64_t address) {
  const uint64_t mixed = (address >> 3) * 0x9e3779b97f4a7c15;
  return mixed ^ (mixed >> 29);
}

// Returns the word at `address`, a multiple of 8, of the block filled from `seed`. Blocks have
// different seeds and therefore differ in every word; within a block each address has a different
// word, so that a page that is mapped twice shows too.
MEMREPLAY_HOST_DEVICE constexpr uint64_t PatternWord(uint64_t seed, uint64_t address) {
  return PatternOfAddress(address) ^ (seed * 0xbf58476d1ce4e5b9);
}

// Returns the only seed whose word at `address` is `word`.
constexpr uint64_t SeedOfWord(uint64_t word, uint64_t address) {
  return (word ^ PatternOfAddress(address)) * 0x96de1b173f119089;
}

// Fills one thread's share of [address, address + size): the words `first`, `first` + `step` ...
// The last size % 8 bytes belong to the thread with `first` 0. `address` is a multiple of 8.
MEMREPLAY_HOST_DEVICE inline void FillShare(uint64_t address, uint64_t size, uint64_t seed,
                                            uint64_t first, uint64_t step) {
  auto* const words = reinterpret_cast<uint64_t*>(address);
  const uint64_t count = size / 8;
  for (uint64_t i = first; i < count; i += step) words[i] = PatternWord(seed, address + 8 * i);
  if (first != 0) return;
  auto* const bytes = reinterpret_cast<unsigned char*>(address);
  for (uint64_t i = count * 8; i < size; ++i) {
    bytes[i] = static_cast<unsigned char>(PatternWord(seed, address + count * 8) >> (8 * (i % 8)));
  }
}

// Checks one thread's share: returns the offset of the first word (or byte of the last, partial
// one) that differs from the pattern, or kNothingBad.
MEMREPLAY_HOST_DEVICE inline uint64_t CheckShare(uint64_t address, uint64_t size, uint64_t seed,
                                                 uint64_t first, uint64_t step) {
  const auto* const words = reinterpret_cast<const uint64_t*>(address);
  const uint64_t count = size / 8;
  for (uint64_t i = first; i < count; i += step) {
    if (words[i] != PatternWord(seed, address + 8 * i)) return 8 * i;
  }
  if (first != 0) return kNothingBad;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(address);
  for (uint64_t i = count * 8; i < size; ++i) {
    const auto expected =
        static_cast<unsigned char>(PatternWord(seed, address + count * 8) >> (8 * (i % 8)));
    if (bytes[i] != expected) return i;
  }
  return kNothingBad;
}

}  // namespace memreplay
