#include "sim/recorded_device.h"

#include <algorithm>

#include "sim/size_rules.h"

namespace memreplay {

RecordedDevice::RecordedDevice(const Schedule& schedule, Bytes total_memory)
    : schedule_(schedule), total_memory_(total_memory) {}

void RecordedDevice::OnRequest(size_t request) {
  request_ = request;
  const absl::Span<const uint32_t> begins = schedule_.recorded_begin();
  next_ = begins[request];
  end_ = request + 1 < begins.size() ? begins[request + 1] : schedule_.recorded().size();
}

const Event* RecordedDevice::NextEffect() {
  for (; next_ < end_; ++next_) {
    const Event& event = schedule_.recorded()[next_];
    switch (event.kind) {
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentFree:
      case EventKind::kSegmentMap:
      case EventKind::kSegmentUnmap:
      case EventKind::kOom: return &event;
      default: break;
    }
  }
  return nullptr;
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

Address RecordedDevice::Invent(Bytes size) {
  ++invented_;
  const Address address = invented_end_;
  invented_end_ = invented_end_ + RoundUp(size, MiB(2));
  return address;
}

Bytes RecordedDevice::FreeMemory() {
  for (size_t i = next_; i < end_; ++i) {
    const Event& event = schedule_.recorded()[i];
    if (event.kind == EventKind::kOom) return Bytes(event.address.value());
  }
  return Bytes();
}

std::optional<Address> RecordedDevice::AllocateSegment(Bytes size) {
  if (InjectedFailure()) return std::nullopt;
  const Event* event = NextEffect();
  if (event != nullptr) {
    switch (event->kind) {
      case EventKind::kSegmentAlloc:
        if (event->size != size) break;
        ++next_;
        return event->address;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap:
      case EventKind::kOom: return std::nullopt;
      default: break;
    }
  }
  return Invent(size);
}

void RecordedDevice::FreeSegment(Address address, Bytes size) {
  Consume(EventKind::kSegmentFree, address, size);
}

Address RecordedDevice::ReserveRange(Bytes size) {
  const Event* event = NextEffect();
  Address base;
  if (event != nullptr && event->kind == EventKind::kSegmentMap) {
    base = event->address;
  } else {
    base = FirstPagesLater();
    if (base.is_null()) base = Invent(size);
  }
  reservations_.emplace_back(base, size);
  return base;
}

// Nothing was mapped at once in a new reservation: where its first pages come,
// those of the same stream and pool that lie in no reservation yet. Null if none do.
Address RecordedDevice::FirstPagesLater() const {
  const Event& request = schedule_.requests()[request_];
  const auto is_known = [this](Address address) {
    return std::any_of(reservations_.begin(), reservations_.end(), [&](const auto& reservation) {
      return address >= reservation.first && address < reservation.first + reservation.second;
    });
  };
  const absl::Span<const Event> recorded = schedule_.recorded();
  Address first;  // mapped by the malloc whose entry is still to come
  for (size_t i = next_; i < recorded.size(); ++i) {
    const Event& later = recorded[i];
    if (later.kind == EventKind::kAlloc || later.kind == EventKind::kOom) {
      if (!first.is_null() && (later.size > kSmallSize) == (request.size > kSmallSize))
        return first;
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
  const auto it = std::find(reservations_.begin(), reservations_.end(), std::pair(address, size));
  if (it != reservations_.end()) reservations_.erase(it);
}

bool RecordedDevice::MapPages(Address address, Bytes size, Bytes /*page*/) {
  if (InjectedFailure()) return false;
  const Event* event = NextEffect();
  if (event != nullptr) {
    switch (event->kind) {
      case EventKind::kSegmentMap:
        if (event->address != address || event->size != size) break;
        ++next_;
        return true;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap:
      case EventKind::kOom: return false;
      default: break;
    }
  }
  ++invented_;
  return true;
}

void RecordedDevice::UnmapPages(Address address, Bytes size, Bytes /*page*/) {
  Consume(EventKind::kSegmentUnmap, address, size);
}

RecordedDevice::Progress& RecordedDevice::StreamProgress(uint32_t stream) {
  if (stream >= streams_.size()) streams_.resize(stream + 1);
  return streams_[stream];
}

StreamEvent RecordedDevice::RecordEvent(uint32_t stream) {
  return {stream, ++StreamProgress(stream).recorded};
}

bool RecordedDevice::IsComplete(const StreamEvent& event) {
  return event.ticket <= StreamProgress(event.stream).completed;
}

void RecordedDevice::Synchronize(const StreamEvent& event) {
  Progress& progress = StreamProgress(event.stream);
  progress.completed = std::max(progress.completed, event.ticket);
}

void RecordedDevice::StreamDone(uint32_t stream) {
  Progress& progress = StreamProgress(stream);
  progress.completed = progress.recorded;
}

}  // namespace memreplay
