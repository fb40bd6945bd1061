#include "sim/device/recorded_device.h"

#include <algorithm>
#include <iterator>

#include "sim/settings/size_rules.h"

namespace memreplay {
namespace {

// Returns whether an effect shows that the driver refused the memory requested before it.
bool IsRefusal(const Event* effect) {
  return effect != nullptr &&
         (effect->kind == EventKind::kSegmentFree || effect->kind == EventKind::kSegmentUnmap ||
          effect->kind == EventKind::kOom);
}

}  // namespace

std::optional<Bytes> GpuLimits::refused() const {
  std::optional<Bytes> least;
  for (const Bytes wanted : refusals) {
    if (wanted > granted && wanted < least.value_or(kUnlimited)) least = wanted;
  }
  return least;
}

RecordedDevice::RecordedDevice(const Schedule& schedule, Bytes total_memory)
    : schedule_(schedule), total_memory_(total_memory) {}

void RecordedDevice::Hold(const MemoryState& segments) {
  for (const SegmentInfo& segment : segments) {
    if (segment.total_size > Bytes()) Add(segment.address, segment.total_size);
  }
  NoteGrant();
}

void RecordedDevice::Add(Address address, Bytes size) {
  if (held_.emplace(address, size).second) held_bytes_ += size;
}

void RecordedDevice::Grant(Address address, Bytes size) {
  ++next_;
  Add(address, size);
  NoteGrant();
}

void RecordedDevice::NoteGrant() {
  if (invented_ == 0) limits_.granted = std::max(limits_.granted, held_bytes_);
}

void RecordedDevice::NoteRefusal(Bytes size) {
  if (invented_ != 0) return;
  const Bytes wanted = held_bytes_ + size;
  limits_.refusals.push_back(wanted);
  const Event* const effect = NextEffect();
  if (effect->kind == EventKind::kOom)
    limits_.at_oom = held_bytes_ + Bytes(effect->address.value());
}

bool RecordedDevice::IsHeld(Address address, Bytes size) const {
  const auto next = held_.lower_bound(address);
  if (next != held_.end() && next->first < address + size) return true;
  if (next == held_.begin()) return false;
  const auto& [begin, held] = *std::prev(next);
  return begin + held > address;
}

bool RecordedDevice::IsFree(Address address, Bytes size) const {
  return address < kAddressesEnd && size < kAddressesEnd - address && !IsHeld(address, size);
}

void RecordedDevice::OnRequest(size_t request) {
  request_ = request;
  const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
  next_ = begins[request];
  end_ = request + 1 < begins.size() ? begins[request + 1] : schedule_.recorded().size();
}

const Event* RecordedDevice::NextEffect() {
  for (; next_ < end_; ++next_) {
    switch (schedule_.recorded().kind(next_)) {
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentFree:
      case EventKind::kSegmentMap:
      case EventKind::kSegmentUnmap:
      case EventKind::kOom: effect_ = schedule_.recorded()[next_]; return &effect_;
      default: break;
    }
  }
  return nullptr;
}

// Pages are mapped and unmapped in different runs.
void RecordedDevice::Release(Address address, Bytes size) {
  const Address end = address + size;
  auto it = held_.upper_bound(address);
  if (it != held_.begin()) --it;
  while (it != held_.end() && it->first < end) {
    const Address begin = it->first;
    const Address held_end = begin + it->second;
    if (held_end <= address) {
      ++it;
      continue;
    }
    held_bytes_ -= it->second;
    it = held_.erase(it);
    if (begin < address) Add(begin, address - begin);
    if (end < held_end) Add(end, held_end - end);
  }
}

void RecordedDevice::Consume(EventKind kind, Address address, Bytes size) {
  const Event* event = NextEffect();
  if (event != nullptr && event->kind == kind && event->address == address && event->size == size) {
    ++next_;
  }
}

bool RecordedDevice::InjectedFailure() {
  if (failures_ == 0) return false;
  --failures_;
  return true;
}

std::optional<Address> RecordedDevice::Invent(Bytes size) {
  if (size > kInventedEnd - invented_end_) return std::nullopt;
  ++invented_;
  const Address address = invented_end_;
  invented_end_ = invented_end_ + RoundUp(size, MiB(2));
  return address;
}

Bytes RecordedDevice::FreeMemory() {
  for (size_t i = next_; i < end_; ++i) {
    const Event& event = schedule_.recorded()[i];
    if (event.kind == EventKind::kOom) return event.device_free();
  }
  return Bytes();
}

std::optional<Address> RecordedDevice::AllocateSegment(Bytes size) {
  if (InjectedFailure()) return std::nullopt;
  const Event* const event = NextEffect();
  if (event != nullptr && event->kind == EventKind::kSegmentAlloc && event->size == size &&
      IsFree(event->address, size)) {
    Grant(event->address, size);
    return event->address;
  }
  if (IsRefusal(event)) {
    NoteRefusal(size);
    return std::nullopt;
  }
  const std::optional<Address> invented = Invent(size);
  if (invented.has_value()) Add(*invented, size);
  return invented;
}

void RecordedDevice::FreeSegment(Address address, Bytes size) {
  if (held_.erase(address) != 0) held_bytes_ -= size;
  Consume(EventKind::kSegmentFree, address, size);
}

std::optional<Address> RecordedDevice::ReserveRange(Bytes size) {
  const Event& request = schedule_.requests()[request_];
  const Event* event = NextEffect();
  const bool maps = event != nullptr && event->kind == EventKind::kSegmentMap;
  Address base = maps ? event->address : FirstPagesLater(request);
  const bool taken = std::any_of(reservations_.begin(), reservations_.end(),
                                 [base](const Reservation& r) { return r.base == base; });
  if (base.is_null() || taken || !IsFree(base, kSmallBuffer)) {
    const std::optional<Address> invented = Invent(size);
    if (!invented.has_value()) return std::nullopt;
    base = *invented;
  }
  reservations_.push_back({base, size, request.stream, request.pool, request.size > kSmallSize});
  return base;
}

// Returns where the first pages of a new reservation, in which nothing was mapped at once, are
// mapped later: the first pages of the same kind that lie in no reservation of that kind, or null.
// (The sizes of reservations do not help, because files do not contain the device's memory.)
Address RecordedDevice::FirstPagesLater(const Event& request) const {
  const bool is_large = request.size > kSmallSize;
  const auto is_known = [&](Address address) {
    return std::any_of(reservations_.begin(), reservations_.end(), [&](const Reservation& r) {
      return r.stream == request.stream && r.pool == request.pool && r.is_large == is_large &&
             address >= r.base && address < r.base + r.size;
    });
  };
  const EventView recorded = schedule_.recorded();
  Address first;  // mapped by the malloc whose entry follows
  for (size_t i = next_; i < recorded.size(); ++i) {
    const Event& later = recorded[i];
    if (later.kind == EventKind::kAlloc || later.kind == EventKind::kOom) {
      if (!first.is_null() && (later.size > kSmallSize) == is_large) return first;
      first = Address();
    } else if (later.kind == EventKind::kSegmentMap && first.is_null() &&
               later.stream == request.stream && later.pool == request.pool &&
               !is_known(later.address)) {
      first = later.address;
    }
  }
  return Address();
}

void RecordedDevice::ReleaseRange(Address address, Bytes size) {
  const auto it =
      std::find_if(reservations_.begin(), reservations_.end(),
                   [&](const Reservation& r) { return r.base == address && r.size == size; });
  if (it != reservations_.end()) reservations_.erase(it);
}

bool RecordedDevice::MapPages(Address address, Bytes size, Bytes /*page*/) {
  if (InjectedFailure() || IsHeld(address, size)) return false;
  const Event* const event = NextEffect();
  if (event != nullptr && event->kind == EventKind::kSegmentMap && event->address == address &&
      event->size == size) {
    Grant(address, size);
    return true;
  }
  if (IsRefusal(event)) {
    NoteRefusal(size);
    return false;
  }
  ++invented_;
  Add(address, size);
  return true;
}

void RecordedDevice::UnmapPages(Address address, Bytes size, Bytes /*page*/) {
  Release(address, size);
  Consume(EventKind::kSegmentUnmap, address, size);
}

}  // namespace memreplay
