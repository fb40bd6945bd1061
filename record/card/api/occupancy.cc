#include "record/card/api/occupancy.h"

#include <algorithm>

#include "record/card/device/entry.h"

namespace memreplay::card {

int BlocksPerMultiprocessor(const Card& card, int threads, size_t shared) {
  Assume("kernels are assumed to use 32 registers per thread where their occupancy is queried");
  const Capability& capability = CapabilityOf(card);
  threads = std::max(threads, 1);
  int blocks = std::min(capability.blocks_per_multiprocessor,
                        capability.threads_per_multiprocessor / threads);
  blocks = std::min(blocks, 65536 / (kAssumedRegisters * threads));
  if (shared != 0) {
    // The system keeps 1 KiB of each block since 8.0.
    const size_t kept = card.capability >= 80 ? 1024 : 0;
    const auto whole = static_cast<size_t>(capability.shared_per_multiprocessor);
    blocks = std::min(blocks, static_cast<int>(whole / (shared + kept)));
  }
  return std::max(blocks, 1);
}

}  // namespace memreplay::card
