// Sees every block that PyTorch's allocator hands out and takes back. libc10_cuda.so calls
// c10::reportMemoryUsageToProfiler, and this definition, which is loaded before that of libc10.so,
// is the one it reaches. It forgets what the block's former owner wrote and calls PyTorch's own.
#include <atomic>
#include <cstdint>

#include "record/card/device/device.h"
#include "record/card/stubs/loaded_symbol.h"

namespace memreplay::card {
namespace {

constexpr uint8_t kCuda = 1;  // c10::DeviceType

struct C10Device {
  uint8_t type;
  uint8_t index;
};
static_assert(sizeof(C10Device) == 2);

using Report = void(void*, int64_t, size_t, size_t, C10Device);
std::atomic<Report*> next_report{nullptr};

void Changed(uint64_t address, int64_t size, size_t card) {
  const auto [d, lock] = LockedDevice();
  if (card >= d.cards.size()) return;
  d.allocator_calls[card].fetch_add(1, std::memory_order_relaxed);
  ++d.outside.moment;
  if (size > 0) {
    d.known.Forget(address, static_cast<uint64_t>(size));
    d.marked.Forget(address, static_cast<uint64_t>(size));
    d.outside.HandedOut(address);
  }
  const uint64_t used = d.cards[card].peak_used();
  if (used > d.progress->peak_used.load(std::memory_order_relaxed)) {
    d.progress->peak_used.store(used, std::memory_order_relaxed);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* address, int64_t size, size_t allocated,
                                                      size_t reserved, C10Device on) {
  if (on.type == kCuda) Changed(Number(address), size, on.index);
  Report* report = next_report.load(std::memory_order_relaxed);
  if (report == nullptr) {
    report = reinterpret_cast<Report*>(
        LoadedSymbol("libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
    if (report == nullptr) return;
    next_report.store(report, std::memory_order_relaxed);
  }
  report(address, size, allocated, reserved, on);
}

}  // namespace memreplay::card
