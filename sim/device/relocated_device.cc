#include "sim/device/relocated_device.h"

#include <iterator>

#include "trace/value/check.h"

namespace memreplay {

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
