#include "sim/device/watched_device.h"

#include <iterator>

#include "trace/value/check.h"

namespace memreplay {

std::string_view MemoryCallName(MemoryCall::Kind kind) {
  static constexpr std::string_view kNames[] = {"allocate", "free", "reserve",
                                                "release",  "map",  "unmap"};  // by Kind
  return kNames[static_cast<size_t>(kind)];
}

WatchedDevice::WatchedDevice(Device& device, std::function<Bytes()> free_memory)
    : ForwardingDevice(device), free_memory_(std::move(free_memory)), base_(FreeNow()) {}

uint32_t WatchedDevice::AddRegion(Address address, Bytes size, bool is_reservation) {
  const auto number = static_cast<uint32_t>(regions_.size());
  regions_.push_back({address, size, is_reservation, true});
  // What was there before no longer exists, so no address refers to it.
  auto it = by_address_.lower_bound(address);
  if (it != by_address_.begin()) {
    const auto before = std::prev(it);
    const Region& other = regions_[before->second];
    if (!other.is_held && other.address + other.size > address) by_address_.erase(before);
  }
  while (it != by_address_.end() && it->first < address + size) {
    it = regions_[it->second].is_held ? std::next(it) : by_address_.erase(it);
  }
  by_address_[address] = number;
  return number;
}

void WatchedDevice::DropRegion(Address address) {
  const auto it = by_address_.find(address);
  if (it != by_address_.end()) regions_[it->second].is_held = false;
}

Place WatchedDevice::PlaceOf(Address address) const {
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return {};
  --it;
  const Region& region = regions_[it->second];
  if (address >= region.address + region.size) return {};
  return {it->second, address - region.address};
}

void WatchedDevice::Log(MemoryCall::Kind kind, Address address, Bytes size, Bytes page,
                        bool granted) {
  if (kind != MemoryCall::Kind::kReserve && kind != MemoryCall::Kind::kRelease) {
    used_ = UsedNow();
  }
  calls_.push_back({.kind = kind,
                    .granted = granted,
                    .place = granted ? PlaceOf(address) : Place{},
                    .address = granted ? address : Address(),
                    .size = size,
                    .page = page,
                    .used = used_,
                    .request = request_});
}

std::optional<Address> WatchedDevice::AllocateSegment(Bytes size) {
  const std::optional<Address> address = device_.AllocateSegment(size);
  if (address.has_value()) AddRegion(*address, size, /*is_reservation=*/false);
  Log(MemoryCall::Kind::kAllocate, address.value_or(Address()), size, Bytes(), address.has_value());
  return address;
}

void WatchedDevice::FreeSegment(Address address, Bytes size) {
  device_.FreeSegment(address, size);
  DropRegion(address);
  Log(MemoryCall::Kind::kFree, address, size, Bytes(), true);
}

std::optional<Address> WatchedDevice::ReserveRange(Bytes size) {
  const std::optional<Address> address = device_.ReserveRange(size);
  if (address.has_value()) AddRegion(*address, size, /*is_reservation=*/true);
  Log(MemoryCall::Kind::kReserve, address.value_or(Address()), size, Bytes(), address.has_value());
  return address;
}

void WatchedDevice::ReleaseRange(Address address, Bytes size) {
  device_.ReleaseRange(address, size);
  DropRegion(address);
  Log(MemoryCall::Kind::kRelease, address, size, Bytes(), true);
}

bool WatchedDevice::MapPages(Address address, Bytes size, Bytes page) {
  const bool mapped = device_.MapPages(address, size, page);
  if (mapped) {
    for (Bytes at; at < size; at += page) pages_[address + at] = page;
  }
  Log(MemoryCall::Kind::kMap, address, size, page, mapped);
  return mapped;
}

void WatchedDevice::UnmapPages(Address address, Bytes size, Bytes page) {
  device_.UnmapPages(address, size, page);
  pages_.erase(pages_.lower_bound(address), pages_.lower_bound(address + size));
  Log(MemoryCall::Kind::kUnmap, address, size, page, true);
}

template <typename Change>
void WatchedDevice::ShiftBase(const Change& change) {
  const int64_t before = FreeNow();
  change();
  base_ += FreeNow() - before;
}

void WatchedDevice::TakeOutside(Bytes size) {
  ShiftBase([&] { device_.TakeOutside(size); });
}

void WatchedDevice::ReturnOutside(Bytes size) {
  ShiftBase([&] { device_.ReturnOutside(size); });
}

void WatchedDevice::NotePoolChange(bool grew, Bytes size) {
  Log(grew ? MemoryCall::Kind::kMap : MemoryCall::Kind::kUnmap, Address(), size, Bytes(), true);
}

void WatchedDevice::ReleaseAll() {
  for (const auto& [address, page] : pages_) device_.UnmapPages(address, page, page);
  pages_.clear();
  for (Region& region : regions_) {
    if (!region.is_held) continue;
    region.is_held = false;
    if (region.is_reservation) {
      device_.ReleaseRange(region.address, region.size);
    } else {
      device_.FreeSegment(region.address, region.size);
    }
  }
}

RelocatedDevice::RelocatedDevice(Device& device, absl::Span<const MemoryCall> calls)
    : ForwardingDevice(device), calls_(calls) {}

void RelocatedDevice::OnRequest(size_t request) {
  request_ = static_cast<uint32_t>(request);
  const auto is_over = [this](const MemoryCall& call) {
    return call.request == kBeforeFirstRequest || call.request < request_;
  };
  while (next_ < calls_.size() && is_over(calls_[next_])) ++next_;
}

bool RelocatedDevice::IsHeld(Address address, Bytes size) const {
  const auto next = held_.lower_bound(address);
  if (next != held_.end() && next->first < address + size) return true;
  if (next == held_.begin()) return false;
  const auto& [begin, region] = *std::prev(next);
  return begin + region.size > address;
}

Address RelocatedDevice::Place(MemoryCall::Kind kind, Bytes size, Address inner) {
  Address address;
  for (size_t i = next_; i < calls_.size() && calls_[i].request == request_; ++i) {
    const MemoryCall& call = calls_[i];
    if (call.kind != kind || !call.granted) continue;
    if (call.size == size && !IsHeld(call.address, size)) {
      address = call.address;
      next_ = i + 1;
    }
    break;
  }
  if (address.is_null()) {
    ++invented_;
    address = invented_end_;
    invented_end_ = invented_end_ + RoundUp(size, MiB(2));
  }
  held_.emplace(address, Region{inner, size});
  return address;
}

Address RelocatedDevice::Inner(Address address) const {
  const auto next = held_.upper_bound(address);
  MEMREPLAY_CHECK(next != held_.begin(), "an address that was never handed out");
  const auto& [begin, region] = *std::prev(next);
  return region.inner + (address - begin);
}

std::optional<Address> RelocatedDevice::AllocateSegment(Bytes size) {
  const std::optional<Address> inner = device_.AllocateSegment(size);
  if (!inner.has_value()) return std::nullopt;
  return Place(MemoryCall::Kind::kAllocate, size, *inner);
}

void RelocatedDevice::FreeSegment(Address address, Bytes size) {
  device_.FreeSegment(Inner(address), size);
  held_.erase(address);
}

std::optional<Address> RelocatedDevice::ReserveRange(Bytes size) {
  const std::optional<Address> inner = device_.ReserveRange(size);
  if (!inner.has_value()) return std::nullopt;
  return Place(MemoryCall::Kind::kReserve, size, *inner);
}

void RelocatedDevice::ReleaseRange(Address address, Bytes size) {
  device_.ReleaseRange(Inner(address), size);
  held_.erase(address);
}

bool RelocatedDevice::MapPages(Address address, Bytes size, Bytes page) {
  return device_.MapPages(Inner(address), size, page);
}

void RelocatedDevice::UnmapPages(Address address, Bytes size, Bytes page) {
  device_.UnmapPages(Inner(address), size, page);
}

}  // namespace memreplay
