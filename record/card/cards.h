// The cards that can be imagined. cards.cc is the table, with the public source of each figure.
#pragma once

#include <cstdint>
#include <string>

namespace memreplay::card {

// What NVIDIA's programming guide says of a compute capability.
struct Capability {
  int number;  // 89 for 8.9
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_per_multiprocessor;  // bytes
  int shared_per_block_optin;     // bytes
};

struct Card {
  const char* name;      // what --card takes: "rtx-4090"
  const char* title;     // what the driver says: "NVIDIA GeForce RTX 4090"
  int capability;        // 89
  std::uint64_t memory;  // bytes, as cudaMemGetInfo reports the total
  int multiprocessors;
  int l2_bytes;
  int clock_khz;  // highest clock of the multiprocessors
  int memory_clock_khz;
  int memory_bus_bits;
  const char* source;  // where the figures are from
};

// What a process with PyTorch takes of a card beside its allocator: CUDA's context, kernels,
// cuBLAS' and others' own memory. One figure for all cards, a stated assumption.
inline constexpr std::uint64_t kContextBytes = std::uint64_t{500} << 20;

// The card that `name` means: its name or a part of it that no other card shares; case, '-', '_'
// and ' ' do not matter. Null if none or several do; `error` then lists what there is.
const Card* FindCard(const char* name, std::string* error);

const Capability& CapabilityOf(const Card& card);

// The table as JSON.
std::string ListCards();

}  // namespace memreplay::card
