// The CUDA driver: pages and reservations of address space (expandable segments, sleep modes).
#include <cstdint>

#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

constexpr int kFabric = 8;  // a handle type for other machines

struct AllocationProperties {  // the head of CUmemAllocationProp
  int type;
  int handle_types;
  int location_type;
  int location_id;
};

DOES(cuMemGetAllocationGranularity, (size_t * granularity, const void*, int),
     *granularity = kDriverUnit)

ENTRY(int, cuMemAddressReserve, uint64_t* address, size_t size, size_t, uint64_t, uint64_t) {
  if (size == 0) return kInvalidValue;
  const auto [d, lock] = LockedDevice();
  *address = d.cards[static_cast<size_t>(CurrentCard())].Reserve(size);
  if (*address == 0) return kMemoryAllocation;
  d.outside.Allocated(kReservedAddresses, __builtin_return_address(0), CurrentCard(), *address,
                      size);
  return kSuccess;
}

ENTRY(int, cuMemAddressFree, uint64_t address, size_t) {
  const auto [d, lock] = LockedDevice();
  const int card = d.backing.CardOf(address);
  if (card < 0) return kInvalidValue;
  d.outside.Freed(address);
  return d.cards[static_cast<size_t>(card)].Unreserve(address) != 0 ? kSuccess : kInvalidValue;
}

ENTRY(int, cuMemCreate, uint64_t* handle, size_t size,
      MayBeNull<const AllocationProperties> properties, uint64_t) {
  if (size == 0) return kInvalidValue;
  if (properties != nullptr && (properties->handle_types & kFabric) != 0) return kNotSupported;
  const auto [d, lock] = LockedDevice();
  const int card = properties != nullptr ? properties->location_id : CurrentCard();
  if (card < 0 || card >= d.count()) return kInvalidDevice;
  const uint64_t page = d.cards[static_cast<size_t>(card)].CreatePage(size);
  if (page == 0) return kMemoryAllocation;
  *handle = HandleOf(page, card);
  d.outside.Allocated("cuMemCreate", __builtin_return_address(0), card, *handle, size);
  return kSuccess;
}

ENTRY(int, cuMemRelease, uint64_t handle) {
  const auto [d, lock] = LockedDevice();
  const auto card = static_cast<size_t>(handle % kMaxCards);
  if (card >= d.cards.size()) return kInvalidValue;
  d.outside.Freed(handle);
  return d.cards[card].ReleasePage(handle / kMaxCards) ? kSuccess : kInvalidValue;
}

ENTRY(int, cuMemMap, uint64_t address, size_t size, size_t, uint64_t handle, uint64_t) {
  const auto [d, lock] = LockedDevice();
  if (size == 0 || d.backing.CardOf(address) < 0) return kInvalidValue;
  d.backing.Open(address, size);
  d.outside.Mapped(handle, address, size);
  return kSuccess;
}

ENTRY(int, cuMemUnmap, uint64_t address, size_t size) {
  const auto [d, lock] = LockedDevice();
  if (size == 0 || d.backing.CardOf(address) < 0) return kInvalidValue;
  d.known.Forget(address, size);
  d.backing.Close(address, size);
  d.outside.Unmapped(address);
  return kSuccess;
}

ENTRY(int, cuMemSetAccess, uint64_t, size_t, const void*, size_t) { return kSuccess; }

ENTRY(int, cuMemGetAddressRange_v2, MayBeNull<uint64_t> base, MayBeNull<size_t> size,
      uint64_t address) {
  const auto [d, lock] = LockedDevice();
  const int card = d.backing.CardOf(address);
  if (card < 0) return kInvalidValue;
  const Memory::Allocation found = d.cards[static_cast<size_t>(card)].AllocationOf(address);
  if (base != nullptr) *base = found.size != 0 ? found.address : address;
  if (size != nullptr) *size = found.size;
  return kSuccess;
}
ALSO(cuMemGetAddressRange, cuMemGetAddressRange_v2);

}  // namespace
}  // namespace memreplay::card
