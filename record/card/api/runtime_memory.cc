// The CUDA runtime: memory of the card and of the host, and copies.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "record/card/api/allocate.h"
#include "record/card/device/copies.h"
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/hooks/pinned_hook.h"
#include "record/card/stubs/page.h"

namespace memreplay::card {

int Allocate(const char* what, const void* caller, void** out, size_t bytes) {
  const auto [d, lock] = LockedDevice();
  *out = nullptr;
  if (d.count() == 0) return Failed(kNoDevice);
  if (bytes == 0) return kSuccess;
  Memory& memory = d.cards[static_cast<size_t>(CurrentCard())];
  const uint64_t address = memory.Allocate(bytes);
  if (address == 0) return Failed(kMemoryAllocation);
  d.backing.Open(address, memory.SizeOf(address));
  d.outside.Allocated(what, caller, CurrentCard(), address, bytes);
  d.outside.Mapped(address, address, bytes);
  *out = Pointer(address);
  return kSuccess;
}

namespace {

size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

ENTRY(int, cudaMalloc, void** out, size_t bytes) {
  return Allocate("cudaMalloc", __builtin_return_address(0), out, bytes);
}
ENTRY(int, cuMemAlloc_v2, uint64_t* out, size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  void* address = nullptr;
  const int status = Allocate("cuMemAlloc", __builtin_return_address(0), &address, bytes);
  *out = Number(address);
  return status;
}

ENTRY(int, cudaFree, void* address) {
  if (address == nullptr) return kSuccess;
  const auto [d, lock] = LockedDevice();
  const int card = d.backing.CardOf(Number(address));
  if (card < 0) return Failed(kInvalidValue);
  const uint64_t size = d.cards[static_cast<size_t>(card)].Free(Number(address));
  if (size == 0) return d.FreePooled(Number(address)) != 0 ? kSuccess : Failed(kInvalidValue);
  // The driver waits too before it unmaps.
  if (d.streams.completion() != Streams::Completion::kExplicit) {
    d.streams.SynchronizeCard(card, d.now());
  }
  d.known.Forget(Number(address), size);
  d.backing.Close(Number(address), size);
  d.outside.Unmapped(Number(address));
  d.outside.Freed(Number(address));
  return kSuccess;
}
ALSO(cuMemFree_v2, cudaFree);

ENTRY(int, cudaMemGetInfo, size_t* free_bytes, size_t* total) {
  const auto [d, lock] = LockedDevice();
  if (d.count() == 0) return Failed(kNoDevice);
  const Memory& memory = d.cards[static_cast<size_t>(CurrentCard())];
  *free_bytes = memory.free_bytes();
  *total = memory.total();
  return kSuccess;
}
ALSO(cuMemGetInfo_v2, cudaMemGetInfo);

int Done(bool is_done) { return is_done ? kSuccess : Failed(kInvalidValue); }

// Copies. If the host waits for a copy, the work before it is done.
void WaitFor(const void* stream) {
  const auto [d, lock] = LockedDevice();
  d.streams.Synchronize(StreamKeyOf(stream), d.now());
}

ENTRY(int, cudaMemcpy, void* to, const void* from, size_t size, int) {
  const bool is_done = Copy(to, from, size);
  WaitFor(nullptr);
  return Done(is_done);
}
ENTRY(int, cudaMemcpyAsync, void* to, const void* from, size_t size, int, void*) {
  return Done(Copy(to, from, size));
}
ENTRY(int, cudaMemcpyPeer, void* to, int, const void* from, int, size_t size) {
  return Done(Copy(to, from, size));
}
ENTRY(int, cudaMemcpyPeerAsync, void* to, int, const void* from, int, size_t size, void*) {
  return Done(Copy(to, from, size));
}
ENTRY(int, cudaMemcpy2D, void* to, size_t to_pitch, const void* from, size_t from_pitch,
      size_t width, size_t height, int) {
  return Done(Copy2D(to, to_pitch, from, from_pitch, width, height));
}
ENTRY(int, cudaMemcpy2DAsync, void* to, size_t to_pitch, const void* from, size_t from_pitch,
      size_t width, size_t height, int, void*) {
  return Done(Copy2D(to, to_pitch, from, from_pitch, width, height));
}
ENTRY(int, cudaMemset, void* to, int byte, size_t size) { return Done(Fill(to, byte, size)); }
ENTRY(int, cudaMemsetAsync, void* to, int byte, size_t size, void*) {
  return Done(Fill(to, byte, size));
}

// Variables of the card: __constant__ and __device__. No kernel reads them here.
ENTRY(int, cudaMemcpyToSymbol, const void*, const void*, size_t, size_t, int) { return kSuccess; }
ENTRY(int, cudaMemcpyToSymbolAsync, const void*, const void*, size_t, size_t, int, void*) {
  return kSuccess;
}

// Pinned memory. The lock is held.
bool AddHostRange(Device* d, uint64_t address, const HostRange& range) {
  if (range.is_pinned) {
    const uint64_t limit = d->settings.host_memory;
    uint64_t left = limit - std::min(limit, d->pinned.now());
    if (d->shares_host_memory()) left = std::min(left, d->cards[0].free_bytes());
    if (range.size > left) {
      ++d->refused_pins;
      return false;
    }
    d->pinned.Add(range.size, range.is_torchs);
    if (d->shares_host_memory()) d->cards[0].TakeExternal(static_cast<int64_t>(range.size));
  }
  d->host[address] = range;
  return true;
}

// Removes a range and returns its size in bytes, or 0 if there is none.
uint64_t RemoveHostRange(Device* d, uint64_t address) {
  const auto found = d->host.find(address);
  if (found == d->host.end()) return 0;
  const HostRange range = found->second;
  d->host.erase(found);
  if (range.is_pinned) {
    d->pinned.Remove(range.size, range.is_torchs);
    if (d->shares_host_memory()) d->cards[0].TakeExternal(-static_cast<int64_t>(range.size));
    if (range.is_torchs && PinnedFree() == 0) d->pinned.Emptied();
  }
  return range.size;
}

int AllocateOnHost(void** out, size_t bytes, bool is_pinned) {
  Device& d = TheDevice();
  *out = nullptr;
  if (bytes == 0) return is_pinned ? kSuccess : Failed(kInvalidValue);  // or managed
  void* map = mmap(nullptr, WholePages(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return Failed(kMemoryAllocation);
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (!AddHostRange(&d, Number(map), {bytes, is_pinned, InPinnedAllocator()})) {
    munmap(map, WholePages(bytes));
    return Failed(kMemoryAllocation);
  }
  *out = map;
  return kSuccess;
}

ENTRY(int, cudaHostAlloc, void** out, size_t bytes, unsigned) {
  return AllocateOnHost(out, bytes, true);
}
ENTRY(int, cudaMallocHost, void** out, size_t bytes) { return AllocateOnHost(out, bytes, true); }
ENTRY(int, cudaMallocManaged, void** out, size_t bytes, unsigned) {
  Assume("managed memory is host memory and takes nothing of the GPU");
  return AllocateOnHost(out, bytes, false);
}
ENTRY(int, cudaFreeHost, void* address) {
  if (address == nullptr) return kSuccess;
  const auto [d, lock] = LockedDevice();
  const uint64_t size = RemoveHostRange(&d, Number(address));
  if (size == 0) return Failed(kInvalidValue);
  munmap(address, WholePages(size));
  return kSuccess;
}
ENTRY(int, cudaHostRegister, void* address, size_t bytes, unsigned) {
  if (address == nullptr || bytes == 0) return Failed(kInvalidValue);
  const auto [d, lock] = LockedDevice();
  RemoveHostRange(&d, Number(address));
  return AddHostRange(&d, Number(address), {bytes, true, InPinnedAllocator()})
             ? kSuccess
             : Failed(kMemoryAllocation);
}
DOES_LOCKED(cudaHostUnregister, (void* address), RemoveHostRange(&d, Number(address)))
DOES(cudaHostGetDevicePointer, (void** out, void* address, unsigned), *out = address)

bool IsPinned(const Device& d, uint64_t address) {
  auto range = d.host.upper_bound(address);
  if (range == d.host.begin()) return false;
  --range;
  return address - range->first < range->second.size;
}

struct PointerAttributes {
  int type;  // 0 unregistered, 1 host, 2 device
  int device;
  const void* device_pointer;
  const void* host_pointer;
  long reserved[8];  // from 13.0 on
};

ENTRY(int, cudaPointerGetAttributes, PointerAttributes* attributes, const void* address) {
  Device& d = TheDevice();
  std::memset(attributes, 0, CudaFrom(13000) ? sizeof *attributes : 24);
  attributes->device = -1;
  if (const int card = d.backing.CardOf(Number(address)); card >= 0) {
    attributes->type = 2;
    attributes->device = card;
    attributes->device_pointer = address;
    return kSuccess;
  }
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (IsPinned(d, Number(address))) {
    attributes->type = 1;
    attributes->device = CurrentCard();
    attributes->device_pointer = attributes->host_pointer = address;
  }
  return kSuccess;
}

ENTRY(int, cuPointerGetAttribute, char* to, int attribute, uint64_t address) {
  enum {
    kContext = 1,
    kMemoryType = 2,
    kDevicePointer = 3,
    kHostPointer = 4,
    kOrdinal = 9,
    kRangeStart = 11,
    kRangeSize = 12
  };
  void* out = to;
  Device& d = TheDevice();
  int card = d.backing.CardOf(address);
  const bool on_card = card >= 0;
  if (!on_card) {
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (!IsPinned(d, address)) return kInvalidValue;
    card = CurrentCard();
  }
  if (on_card && (attribute == kRangeStart || attribute == kRangeSize)) {
    const std::lock_guard<std::mutex> lock(d.mutex);
    const Memory::Allocation found = d.cards[static_cast<size_t>(card)].AllocationOf(address);
    if (found.size != 0) {
      *static_cast<uint64_t*>(out) = attribute == kRangeStart ? found.address : found.size;
      return kSuccess;
    }
  }
  switch (attribute) {
    case kContext: *static_cast<uint64_t*>(out) = ContextOf(card); return kSuccess;
    case kMemoryType: *static_cast<unsigned*>(out) = on_card ? 2 : 1; return kSuccess;
    case kDevicePointer:
    case kHostPointer: *static_cast<uint64_t*>(out) = address; return kSuccess;
    case kOrdinal: *static_cast<int*>(out) = card; return kSuccess;
    default: return Refuse("libcuda.so.1", "cuPointerGetAttribute", kNotSupported);
  }
}

}  // namespace
}  // namespace memreplay::card
