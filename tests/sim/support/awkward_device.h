// A device that differs from SimulatedDevice in ways that real ones might: it
// places memory from the top down, refuses, overlaps, counts overhead, is slow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sim/device/simulated_device.h"
#include "sim/device/watched_device.h"

namespace memreplay::testing {

class AwkwardDevice final : public ForwardingDevice {
 public:
  struct Ways {
    Bytes capacity = GiB(8);
    bool explicit_completion = false;
    bool descending = false;                   // each new region lies below the ones before
    std::optional<uint64_t> refuse = {};       // this segment or mapping, counted from 0
    std::optional<uint64_t> refuse_from = {};  // this one and all after it
    std::optional<uint64_t> overlap = {};      // this segment lies where the last one does
    Bytes overhead = Bytes(0);                 // of the driver's own, per segment
    bool slow_streams = false;                 // nothing is complete before it is waited for
  };

  explicit AwkwardDevice(const Ways& ways)
      : ForwardingDevice(inner_),
        ways_(ways),
        inner_({.capacity = ways.capacity, .explicit_completion = ways.explicit_completion}) {}

  Bytes FreeMemory() override { return inner_.FreeMemory() - ways_.overhead * segments_held_; }

  std::optional<Address> AllocateSegment(Bytes size) override {
    if (Refuses()) return std::nullopt;
    const std::optional<Address> inner = inner_.AllocateSegment(size);
    if (!inner.has_value()) return std::nullopt;
    ++segments_held_;
    if (ways_.overlap.has_value() && segments_++ == *ways_.overlap) {
      overlapping_ = *inner;
      return last_;
    }
    last_ = Place(*inner, size);
    return last_;
  }
  void FreeSegment(Address address, Bytes size) override {
    --segments_held_;
    inner_.FreeSegment(Inner(address), size);
    places_.erase(address);
  }
  std::optional<Address> ReserveRange(Bytes size) override {
    return Place(*inner_.ReserveRange(size), size);
  }
  void ReleaseRange(Address address, Bytes size) override {
    inner_.ReleaseRange(Inner(address), size);
    places_.erase(address);
  }
  bool MapPages(Address address, Bytes size, Bytes page) override {
    if (Refuses()) return false;
    return inner_.MapPages(address, size, page);
  }
  bool IsComplete(const StreamEvent& event) override {
    return !ways_.slow_streams && inner_.IsComplete(event);
  }

 private:
  bool Refuses() {
    const uint64_t grant = grants_++;
    return ways_.refuse == grant || (ways_.refuse_from.has_value() && grant >= *ways_.refuse_from);
  }
  Address Place(Address inner, Bytes size) {
    if (!ways_.descending) {
      places_[inner] = inner;
      return inner;
    }
    next_ = next_ - RoundUp(size, MiB(2));
    places_[next_] = inner;
    return next_;
  }
  Address Inner(Address address) {
    const auto it = places_.find(address);
    if (it != places_.end()) return it->second;
    return overlapping_;  // freed a second time
  }

  const Ways ways_;
  SimulatedDevice inner_;
  Address next_ = Address(uint64_t{1} << 48);
  Address last_;
  Address overlapping_;
  uint64_t grants_ = 0;
  uint64_t segments_ = 0;
  uint64_t segments_held_ = 0;
  std::map<Address, Address> places_;
};

}  // namespace memreplay::testing
