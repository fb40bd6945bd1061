#include "record/card/api/attributes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

// All cards since 7.0 have these in common.
constexpr int kWarp = 32;
constexpr int kThreadsPerBlock = 1024;
constexpr int kSharedPerBlock = 49152;
constexpr int kReservedSharedPerBlock = 1024;  // since 8.0
constexpr int kRegisters = 65536;
constexpr int kGrid = 65535;
constexpr int kWideGrid = 2147483647;
constexpr int kConstantMemory = 65536;

}  // namespace

bool AttributeOf(const Settings& settings, int attribute, int* value) {
  if (!settings.card.has_value() || attribute < 1 || attribute > 200) return false;
  const Card& card = *settings.card;
  const Capability& capability = CapabilityOf(card);
  const bool since_80 = card.capability >= 80;
  const auto number = [&]() -> int {
    switch (attribute) {
      case 1: return kThreadsPerBlock;
      case 2:
      case 3: return 1024;  // block
      case 4: return 64;
      case 5: return kWideGrid;
      case 6:
      case 7: return kGrid;
      case 8: return kSharedPerBlock;
      case 9: return kConstantMemory;
      case 10: return kWarp;
      case 11: return 2147483647;  // pitch
      case 12: return kRegisters;
      case 13: return card.clock_khz;
      case 14: return 512;  // texture alignment
      case 15: return 1;    // copies overlap
      case 16: return card.multiprocessors;
      case 18: return SharesHostMemory(card) ? 1 : 0;  // integrated
      case 19: return 1;                               // maps host memory
      case 31: return 1;                               // concurrent kernels
      case 36: return card.memory_clock_khz;
      case 37: return card.memory_bus_bits;
      case 38: return card.l2_bytes;
      case 39: return capability.threads_per_multiprocessor;
      case 40: return 2;   // copy engines
      case 41: return 1;   // unified addressing
      case 51: return 32;  // texture pitch
      case 75: return card.capability / 10;
      case 76: return card.capability % 10;
      case 78: return 1;  // stream priorities
      case 79:
      case 80: return 1;  // L1 caches
      case 81: return capability.shared_per_multiprocessor;
      case 82: return kRegisters;
      case 83: return 1;  // managed memory
      case 89: return 1;  // concurrent managed access
      case 90: return 1;  // preemption
      case 91: return 1;  // host pointer of registered memory
      case 95: return 1;  // cooperative launch
      case 97: return capability.shared_per_block_optin;
      case 99: return 1;   // host register
      case 102: return 1;  // virtual memory management
      case 103: return 1;  // posix handles
      case 106: return capability.blocks_per_multiprocessor;
      case 111: return since_80 ? kReservedSharedPerBlock : 0;
      case 115: return 1;                              // memory pools
      case 120: return card.capability >= 90 ? 1 : 0;  // clusters
      default: return 0;
    }
  };
  *value = number();
  return true;
}

void FillUuid(int card, void* uuid) {
  auto* bytes = static_cast<unsigned char*>(uuid);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + card + 1);
}

void FillProperties(const Settings& settings, int cuda, int index, void* properties) {
  const Card& card = *settings.card;
  const Capability& capability = CapabilityOf(card);
  auto* bytes = static_cast<char*>(properties);
  // The struct grew with 12 and lost its clocks with 13; all agree up to totalConstMem.
  const bool at_13 = cuda >= 13000;
  std::memset(bytes, 0, cuda >= 13000 ? 1008 : cuda >= 12000 ? 1032 : 728);
  const auto put = [bytes](size_t at, int value) { std::memcpy(bytes + at, &value, 4); };
  const auto put_size = [bytes](size_t at, uint64_t value) { std::memcpy(bytes + at, &value, 8); };
  std::snprintf(bytes, 256, "%s", card.title.c_str());
  FillUuid(index, bytes + 256);
  put_size(288, settings.capacity);
  put_size(296, kSharedPerBlock);
  put(304, kRegisters);
  put(308, kWarp);
  put_size(312, 2147483647);
  put(320, kThreadsPerBlock);
  put(324, 1024), put(328, 1024), put(332, 64);
  put(336, kWideGrid), put(340, kGrid), put(344, kGrid);
  put_size(352, kConstantMemory);
  put(360, card.capability / 10), put(364, card.capability % 10);
  put_size(368, 512), put_size(376, 32);
  put(at_13 ? 384 : 388, card.multiprocessors);
  put(at_13 ? 388 : 396, SharesHostMemory(card) ? 1 : 0);  // integrated
  put(at_13 ? 392 : 400, 1);                               // canMapHostMemory
  if (!at_13) put(348, card.clock_khz), put(384, 1), put(608, card.memory_clock_khz);
  const size_t shift = at_13 ? 16 : 0;
  put(576 - shift, 1);          // concurrentKernels
  put(584 - shift, index + 1);  // pciBusID
  put(600 - shift, 2);          // asyncEngineCount
  put(604 - shift, 1);          // unifiedAddressing
  const size_t later = at_13 ? 20 : 0;
  put(612 - later, card.memory_bus_bits);
  put(616 - later, card.l2_bytes);
  put(624 - later, capability.threads_per_multiprocessor);
  put(628 - later, 1), put(632 - later, 1), put(636 - later, 1);  // priorities, L1 caches
  const size_t shared = at_13 ? 16 : 0;
  put_size(640 - shared, static_cast<uint64_t>(capability.shared_per_multiprocessor));
  put(648 - shared, kRegisters);
  put(652 - shared, 1);  // managedMemory
  const size_t last = at_13 ? 20 : 0;
  put(676 - last, 1), put(680 - last, 1), put(684 - last, 1), put(688 - last, 1);
  const size_t optin = at_13 ? 24 : 0;
  put_size(696 - optin, static_cast<uint64_t>(capability.shared_per_block_optin));
  put(712 - optin, capability.blocks_per_multiprocessor);
  put_size(720 - optin, card.capability >= 80 ? kReservedSharedPerBlock : 0);
  if (cuda >= 12000) {
    put(728 - optin, 1);                              // hostRegisterSupported
    put(744 - optin, 1);                              // memoryPoolsSupported
    put(772 - optin, card.capability >= 90 ? 1 : 0);  // clusterLaunch
  }
}

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
