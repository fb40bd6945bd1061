// Stream-ordered memory: cudaMallocAsync and pools, of the CUDA runtime and of the driver. Both
// have the same handles, attributes and properties.
#include <cstdint>

#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

struct PoolProperties {  // the head of cudaMemPoolProps
  int type;
  int handle_types;
  int location_type;
  int location_id;
};
constexpr int kOnCard = 1;  // cudaMemLocationTypeDevice

void* PoolHandleOf(size_t index) { return Pointer((index + 1) * 16); }

// Returns null for a handle that is no live pool. The lock is held.
Device::Pool* PoolOf(Device* d, const void* handle) {
  const uint64_t index = Number(handle) / 16 - 1;
  if (index >= d->pools.size() || d->pools[index].pool == nullptr) return nullptr;
  return &d->pools[index];
}

// Allocates from a pool; `handle` null: the current pool of the current card.
int AllocateFrom(const void* handle, const char* what, const void* caller, uint64_t* out,
                 size_t bytes) {
  const auto [d, lock] = LockedDevice();
  *out = 0;
  if (d.count() == 0) return Failed(kNoDevice);
  if (handle == nullptr) {
    handle = PoolHandleOf(d.current_pools[static_cast<size_t>(CurrentCard())]);
  }
  Device::Pool* from = PoolOf(&d, handle);
  if (from == nullptr) return Failed(kInvalidValue);
  if (bytes == 0) return kSuccess;
  const uint64_t address = from->pool->Allocate(bytes);
  if (address == 0) return Failed(kMemoryAllocation);
  Assume("memory of cudaMallocAsync is assumed to lie in its pool without holes");
  d.backing.Open(address, WholeDriverUnits(bytes));
  d.outside.Allocated(what, caller, from->card, address, bytes);
  d.outside.Mapped(address, address, bytes);
  *out = address;
  return kSuccess;
}

ENTRY(int, cudaMallocAsync, uint64_t* out, size_t bytes, void*) {
  return AllocateFrom(nullptr, "cudaMallocAsync", __builtin_return_address(0), out, bytes);
}
ALSO(cudaMallocAsync_ptsz, cudaMallocAsync);
ENTRY(int, cuMemAllocAsync, uint64_t* out, size_t bytes, void*) {
  return AllocateFrom(nullptr, "cuMemAllocAsync", __builtin_return_address(0), out, bytes);
}
ALSO(cuMemAllocAsync_ptsz, cuMemAllocAsync);
ENTRY(int, cudaMallocFromPoolAsync, uint64_t* out, size_t bytes, void* pool, void*) {
  return pool == nullptr ? Failed(kInvalidValue)
                         : AllocateFrom(pool, "cudaMallocFromPoolAsync",
                                        __builtin_return_address(0), out, bytes);
}
ALSO(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);
ENTRY(int, cuMemAllocFromPoolAsync, uint64_t* out, size_t bytes, void* pool, void*) {
  return pool == nullptr ? Failed(kInvalidValue)
                         : AllocateFrom(pool, "cuMemAllocFromPoolAsync",
                                        __builtin_return_address(0), out, bytes);
}
ALSO(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);

ENTRY(int, cudaFreeAsync, void* address, void*) {
  if (address == nullptr) return kSuccess;
  {
    const auto [d, lock] = LockedDevice();
    if (d.FreePooled(Number(address)) != 0) return kSuccess;
  }
  return reinterpret_cast<int (*)(void*)>(FindEntry("cudaFree"))(address);
}
ALSO(cudaFreeAsync_ptsz, cudaFreeAsync);
ALSO(cuMemFreeAsync, cudaFreeAsync);
ALSO(cuMemFreeAsync_ptsz, cudaFreeAsync);

ENTRY(int, cudaMemPoolCreate, void** out, const PoolProperties* properties) {
  const auto [d, lock] = LockedDevice();
  if (properties->location_type != kOnCard) return Failed(kNotSupported);
  const int card = properties->location_id;
  if (card < 0 || card >= d.count()) return Failed(kInvalidDevice);
  *out = PoolHandleOf(d.pools.size());
  Memory* memory = &d.cards[static_cast<size_t>(card)];
  d.pools.push_back({card, std::make_unique<MemoryPool>(memory)});
  return kSuccess;
}
ALSO(cuMemPoolCreate, cudaMemPoolCreate);

ENTRY(int, cudaMemPoolDestroy, void* handle) {
  const auto [d, lock] = LockedDevice();
  Device::Pool* found = PoolOf(&d, handle);
  const auto index = static_cast<size_t>(found - d.pools.data());
  if (found == nullptr || index < d.cards.size()) return Failed(kInvalidValue);  // or a default one
  size_t& current = d.current_pools[static_cast<size_t>(found->card)];
  if (current == index) current = static_cast<size_t>(found->card);
  // What was allocated from it stays valid until it is freed.
  found->pool->keep = 0;
  found->pool->Trim(0);
  if (found->pool->used() == 0) found->pool.reset();
  return kSuccess;
}
ALSO(cuMemPoolDestroy, cudaMemPoolDestroy);

int GetPool(size_t index, int card, void** out) {
  if (card < 0 || card >= TheDevice().count()) return Failed(kInvalidDevice);
  *out = PoolHandleOf(index);
  return kSuccess;
}
ENTRY(int, cudaDeviceGetDefaultMemPool, void** out, int card) {
  return GetPool(static_cast<size_t>(card), card, out);
}
ALSO(cuDeviceGetDefaultMemPool, cudaDeviceGetDefaultMemPool);
ENTRY(int, cudaDeviceGetMemPool, void** out, int card) {
  const auto [d, lock] = LockedDevice();
  const bool is_card = card >= 0 && card < d.count();
  return GetPool(is_card ? d.current_pools[static_cast<size_t>(card)] : 0, card, out);
}
ALSO(cuDeviceGetMemPool, cudaDeviceGetMemPool);
ENTRY(int, cudaDeviceSetMemPool, int card, void* handle) {
  const auto [d, lock] = LockedDevice();
  const Device::Pool* found = PoolOf(&d, handle);
  if (found == nullptr || found->card != card) return Failed(kInvalidValue);
  d.current_pools[static_cast<size_t>(card)] = static_cast<size_t>(found - d.pools.data());
  return kSuccess;
}
ALSO(cuDeviceSetMemPool, cudaDeviceSetMemPool);

// Attributes: those before the threshold say what may be reused and change nothing here.
enum PoolAttribute : int {
  kReuseByEvents = 1,
  kReuseByDependencies = 3,
  kThreshold = 4,
  kHeld = 5,
  kMaxHeld = 6,
  kUsed = 7,
  kMaxUsed = 8,
};
ENTRY(int, cudaMemPoolSetAttribute, void* handle, int attribute, const uint64_t* value) {
  const auto [d, lock] = LockedDevice();
  const Device::Pool* found = PoolOf(&d, handle);
  if (found == nullptr) return Failed(kInvalidValue);
  if (attribute == kThreshold) found->pool->keep = *value;
  return kSuccess;
}
ALSO(cuMemPoolSetAttribute, cudaMemPoolSetAttribute);
ENTRY(int, cudaMemPoolGetAttribute, void* handle, int attribute, uint64_t* value) {
  const auto [d, lock] = LockedDevice();
  const Device::Pool* found = PoolOf(&d, handle);
  if (found == nullptr || attribute < kReuseByEvents) return Failed(kInvalidValue);
  if (attribute <= kReuseByDependencies) {
    *reinterpret_cast<int*>(value) = 1;
    return kSuccess;
  }
  uint64_t& number = *value;
  switch (attribute) {
    case kThreshold: number = found->pool->keep; return kSuccess;
    case kHeld: number = found->pool->held(); return kSuccess;
    case kMaxHeld: number = found->pool->most_held(); return kSuccess;
    case kUsed: number = found->pool->used(); return kSuccess;
    case kMaxUsed: number = found->pool->most_used(); return kSuccess;
    default: return Refuse("libcudart.so", "cudaMemPoolGetAttribute", kInvalidValue);
  }
}
ALSO(cuMemPoolGetAttribute, cudaMemPoolGetAttribute);
ENTRY(int, cudaMemPoolTrimTo, void* handle, size_t keep) {
  const auto [d, lock] = LockedDevice();
  const Device::Pool* found = PoolOf(&d, handle);
  if (found == nullptr) return Failed(kInvalidValue);
  found->pool->Trim(keep);
  return kSuccess;
}
ALSO(cuMemPoolTrimTo, cudaMemPoolTrimTo);
ENTRY(int, cudaMemPoolSetAccess, void*, const void*, size_t) { return kSuccess; }
ALSO(cuMemPoolSetAccess, cudaMemPoolSetAccess);
constexpr int kReadAndWrite = 3;
DOES(cudaMemPoolGetAccess, (int* flags, void*, const void*), *flags = kReadAndWrite)
ALSO(cuMemPoolGetAccess, cudaMemPoolGetAccess);

}  // namespace
}  // namespace memreplay::card
