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

ENTRY(int, cuMemGetAllocationGranularity, std::size_t* granularity, const void*, int) {
  *granularity = kDriverUnit;
  return kSuccess;
}

ENTRY(int, cuMemAddressReserve, std::uint64_t* address, std::size_t size, std::size_t,
      std::uint64_t, std::uint64_t) {
  if (size == 0) return kInvalidValue;
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  *address = d.cards[static_cast<std::size_t>(current_card())].reserve(size);
  if (*address == 0) return kMemoryAllocation;
  d.outside.Allocated(kReservedAddresses, __builtin_return_address(0), current_card(), *address,
                      size);
  return kSuccess;
}

ENTRY(int, cuMemAddressFree, std::uint64_t address, std::size_t) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  const int card = d.backing.card_of(address);
  if (card < 0) return kInvalidValue;
  d.outside.Freed(address);
  return d.cards[static_cast<std::size_t>(card)].unreserve(address) != 0 ? kSuccess : kInvalidValue;
}

ENTRY(int, cuMemCreate, std::uint64_t* handle, std::size_t size,
      MayBeNull<const AllocationProperties> properties, std::uint64_t) {
  if (size == 0) return kInvalidValue;
  if (properties != nullptr && (properties->handle_types & kFabric) != 0) return kNotSupported;
  Device& d = device();
  const int card = properties != nullptr ? properties->location_id : current_card();
  if (card < 0 || card >= d.count()) return kInvalidDevice;
  const std::lock_guard<std::mutex> lock(d.mutex);
  const std::uint64_t page = d.cards[static_cast<std::size_t>(card)].create_page(size);
  if (page == 0) return kMemoryAllocation;
  *handle = HandleOf(page, card);
  d.outside.Allocated("cuMemCreate", __builtin_return_address(0), card, *handle, size);
  return kSuccess;
}

ENTRY(int, cuMemRelease, std::uint64_t handle) {
  Device& d = device();
  const auto card = static_cast<std::size_t>(handle % kMaxCards);
  const std::lock_guard<std::mutex> lock(d.mutex);
  if (card >= d.cards.size()) return kInvalidValue;
  d.outside.Freed(handle);
  return d.cards[card].release_page(handle / kMaxCards) ? kSuccess : kInvalidValue;
}

ENTRY(int, cuMemMap, std::uint64_t address, std::size_t size, std::size_t, std::uint64_t handle,
      std::uint64_t) {
  Device& d = device();
  if (size == 0 || d.backing.card_of(address) < 0) return kInvalidValue;
  d.backing.open(address, size);
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.outside.Mapped(handle, address, size);
  return kSuccess;
}

ENTRY(int, cuMemUnmap, std::uint64_t address, std::size_t size) {
  Device& d = device();
  if (size == 0 || d.backing.card_of(address) < 0) return kInvalidValue;
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.known.forget(address, size);
  d.backing.close(address, size);
  d.outside.Unmapped(address);
  return kSuccess;
}

ENTRY(int, cuMemSetAccess, std::uint64_t, std::size_t, const void*, std::size_t) {
  return kSuccess;
}

ENTRY(int, cuMemGetAddressRange_v2, MayBeNull<std::uint64_t> base, MayBeNull<std::size_t> size,
      std::uint64_t address) {
  Device& d = device();
  const int card = d.backing.card_of(address);
  if (card < 0) return kInvalidValue;
  const std::lock_guard<std::mutex> lock(d.mutex);
  const Memory::Allocation found = d.cards[static_cast<std::size_t>(card)].allocation_of(address);
  if (base != nullptr) *base = found.size != 0 ? found.address : address;
  if (size != nullptr) *size = found.size;
  return kSuccess;
}
ALSO(cuMemGetAddressRange, cuMemGetAddressRange_v2);

}  // namespace
}  // namespace memreplay::card
