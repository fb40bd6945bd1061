#include "sim/device/simulated_device.h"

#include <algorithm>
#include <iterator>

#include "trace/value/check.h"

namespace memreplay {
namespace {

constexpr Address kSpillSegments = Address(0x0800000000000000);
constexpr Address kSpillReservations = Address(0x2000000000000000);
constexpr Address kSpillEnd = Address(0x7000000000000000);
constexpr Bytes kChunk = Bytes(DriverAddresses::kChunk);

// Returns what a region of `size` bytes takes: whole units, at least one.
Bytes WholeUnits(Bytes size) { return Bytes(WholeDriverUnits(size.value())); }

}  // namespace

SimulatedDevice::SimulatedDevice(const Options& options)
    : capacity_(std::min(options.capacity.value_or(kMaxDeviceMemory), kMaxDeviceMemory)),
      total_(std::min(options.total.value_or(options.capacity.value_or(kUnlimitedTotal)),
                      kMaxDeviceMemory)),
      unlimited_(!options.capacity.has_value()),
      explicit_completion_(options.explicit_completion),
      costs_(options.costs),
      order_(options.order),
      segments_(kSegmentBase.value(), kSegmentEnd.value(), options.order) {
  spilled_segments_.Give(kSpillSegments.value(), (kSpillReservations - kSpillSegments).value());
  reservations_.Give(kReservationBase.value(), (kReservationEnd - kReservationBase).value());
  reservations_.Give(kSpillReservations.value(), (kSpillEnd - kSpillReservations).value());
}

Bytes SimulatedDevice::FreeMemory() {
  const Bytes taken = used_ + outside_;
  const Bytes most = unlimited_ ? total_ : capacity_;
  return taken >= most ? Bytes(0) : most - taken;
}

Bytes SimulatedDevice::Grantable() const {
  const Bytes taken = unlimited_ ? used_ : used_ + outside_;
  return taken >= capacity_ ? Bytes(0) : capacity_ - taken;
}

bool SimulatedDevice::Charge(Bytes size) {
  if (failures_ != 0) {
    --failures_;
    return false;
  }
  if (size > Grantable()) {
    if (unlimited_ || size > kMaxDeviceMemory) return false;
    const Bytes needed = used_ + outside_ + size;
    if (needed <= kMaxDeviceMemory) {
      same_until_ = std::min(same_until_.value_or(needed), needed);
    }
    return false;
  }
  used_ += size;
  return true;
}

std::optional<Address> SimulatedDevice::AllocateSegment(Bytes size) {
  ++calls_.segment_allocs;
  if (costs_ != nullptr) call_nanoseconds_ += costs_->segment_alloc.At(size);
  if (!Charge(WholeUnits(size))) return std::nullopt;
  const std::optional<Address> address = TakeSegment(size);
  if (!address.has_value()) {
    used_ -= WholeUnits(size);
    return std::nullopt;
  }
  segment_sizes_.emplace(address->value(), size);
  return address;
}

std::optional<Address> SimulatedDevice::TakeSegment(Bytes size) {
  std::optional<uint64_t> address = segments_.Take(size.value());
  if (!address.has_value()) address = spilled_segments_.TakeLowest(size.value());
  if (!address.has_value()) return std::nullopt;
  return Address(*address);
}

std::optional<std::vector<Address>> SimulatedDevice::AllocateStart(
    absl::Span<const Piece> segments) {
  MEMREPLAY_CHECK(segment_sizes_.empty(), "a start that comes after the first segment");
  for (size_t i = 0; i < segments.size(); ++i) {
    const Piece& segment = segments[i];
    if (i > 0 && segment.address < segments[i - 1].address + WholeUnits(segments[i - 1].size)) {
      return std::nullopt;  // in whole units they overlap
    }
    ++calls_.segment_allocs;
    if (!Charge(WholeUnits(segment.size))) return std::nullopt;
  }
  std::vector<Address> addresses(segments.size());
  const bool placed = order_ == AddressOrder::kChunksDownwards ? PlaceInChunks(segments, &addresses)
                                                               : PlaceUpwards(segments, &addresses);
  if (!placed) return std::nullopt;
  for (size_t i = 0; i < segments.size(); ++i) {
    segment_sizes_.emplace(addresses[i].value(), segments[i].size);
  }
  return addresses;
}

// Places segments from kSegmentBase up; a unit that is never returned stands for what lay between.
bool SimulatedDevice::PlaceUpwards(absl::Span<const Piece> segments,
                                   std::vector<Address>* addresses) {
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool touches =
        i == 0 || segments[i - 1].address + WholeUnits(segments[i - 1].size) >= segments[i].address;
    if (!touches) TakeSegment(Bytes(kDriverUnit));
    const std::optional<Address> address = TakeSegment(segments[i].size);
    if (!address.has_value()) return false;
    (*addresses)[i] = *address;
  }
  return true;
}

// Places the recorded chunks, as far as segments reveal them, from kSegmentEnd down. The lowest is
// assumed to be the newest.
bool SimulatedDevice::PlaceInChunks(absl::Span<const Piece> segments,
                                    std::vector<Address>* addresses) {
  const auto chunk_begin = [](Address address) {
    return Address(RoundDown(Bytes(address.value()), kChunk).value());
  };
  const auto chunk_end = [](const Piece& segment) {
    const Address end = segment.address + WholeUnits(segment.size);
    return Address(RoundUp(Bytes(end.value()), kChunk).value());
  };
  // Chunks as [first, last] of segments, highest first.
  struct Chunk {
    size_t first;
    Address begin;  // recorded
    Address end;
  };
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (chunks.empty() || segments[i].address >= chunks.back().end) {
      chunks.push_back({i, chunk_begin(segments[i].address), chunk_end(segments[i])});
    } else {
      chunks.back().end = std::max(chunks.back().end, chunk_end(segments[i]));
    }
  }
  Bytes whole;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const bool touches = c == 0 || chunks[c].begin == chunks[c - 1].end;
    whole += (touches ? Bytes() : kChunk) + (chunks[c].end - chunks[c].begin);
  }
  // New chunks are opened in the range below.
  Address top = kSegmentEnd;
  if (whole >= kSegmentEnd - kSegmentBase) return false;
  segments_ = DriverAddresses(kSegmentBase.value(), (kSegmentEnd - whole).value(), order_);
  for (size_t c = chunks.size(); c-- > 0;) {
    const Chunk& chunk = chunks[c];
    const Bytes size = chunk.end - chunk.begin;
    if (!segments_.Open((top - size).value(), size.value())) return false;
    const size_t end = c + 1 < chunks.size() ? chunks[c + 1].first : segments.size();
    for (size_t i = chunk.first; i < end; ++i) {
      (*addresses)[i] = top - size + (segments[i].address - chunk.begin);
      if (!segments_.TakeAt((*addresses)[i].value(), segments[i].size.value())) return false;
    }
    const bool touches = c == 0 || chunk.begin == chunks[c - 1].end;
    top = top - size - (touches ? Bytes() : kChunk);
  }
  return true;
}

void SimulatedDevice::FreeSegment(Address address, Bytes size) {
  ++calls_.segment_frees;
  if (costs_ != nullptr) call_nanoseconds_ += costs_->segment_free.At(size);
  const auto segment = segment_sizes_.find(address.value());
  MEMREPLAY_CHECK(segment != segment_sizes_.end(), "free of an address that is no segment");
  MEMREPLAY_CHECK(segment->second == size, "segment freed with another size than allocated");
  const bool spilled = address >= kSpillSegments;
  MEMREPLAY_CHECK(spilled ? spilled_segments_.Give(address.value(), size.value())
                          : segments_.Give(address.value(), size.value()),
                  "address range returned twice");
  used_ -= WholeUnits(size);
  segment_sizes_.erase(segment);
}

std::optional<Address> SimulatedDevice::ReserveRange(Bytes size) {
  const std::optional<uint64_t> address = reservations_.TakeLowest(size.value());
  if (!address.has_value()) return std::nullopt;
  reservation_sizes_.emplace(*address, size);
  return Address(*address);
}

void SimulatedDevice::ReleaseRange(Address address, Bytes size) {
  const auto range = reservation_sizes_.find(address.value());
  MEMREPLAY_CHECK(range != reservation_sizes_.end() && range->second == size,
                  "release of an address range that is not reserved");
  MEMREPLAY_CHECK(reservations_.Give(address.value(), size.value()),
                  "address range returned twice");
  reservation_sizes_.erase(range);
}

bool SimulatedDevice::MapPages(Address, Bytes size, Bytes page) {
  MEMREPLAY_CHECK(page.value() != 0 && size.value() % page.value() == 0,
                  "mapping that is not made of whole pages");
  const Bytes per_page = WholeUnits(page);
  const uint64_t pages = size / page;
  uint64_t created = pages;  // the driver refuses the next one
  if (failures_ != 0) {
    --failures_;
    created = 0;
  } else {
    created = std::min(pages, Grantable() / per_page);
  }
  const uint64_t calls = std::min(pages, created + 1);
  calls_.maps += calls;
  if (costs_ != nullptr) call_nanoseconds_ += static_cast<double>(calls) * costs_->map.At(page);
  if (created < pages) return false;
  used_ += per_page * pages;
  return true;
}

void SimulatedDevice::UnmapPages(Address, Bytes size, Bytes page) {
  const Bytes units = WholeUnits(page) * (size / page);
  MEMREPLAY_CHECK(units <= used_, "more pages unmapped than were mapped");
  calls_.unmaps += size / page;
  if (costs_ != nullptr) {
    call_nanoseconds_ += static_cast<double>(size / page) * costs_->unmap.At(page);
  }
  used_ -= units;
}

void SimulatedDevice::TakeOutside(Bytes size) {
  outside_ += std::min(size, kMaxDeviceMemory - outside_);
}

void SimulatedDevice::ReturnOutside(Bytes size) { outside_ -= std::min(size, outside_); }

double CostBySize::At(Bytes size) const {
  if (points_.empty()) return 0;
  const auto above = points_.lower_bound(size);
  if (above == points_.begin()) return above->second;
  const auto& [below, cost] = *std::prev(above);
  const auto bytes = [](Bytes count) { return static_cast<double>(count.value()); };
  if (above == points_.end()) return cost * bytes(size) / bytes(below);
  return cost + bytes(size - below) / bytes(above->first - below) * (above->second - cost);
}

}  // namespace memreplay
