// A device with the responses of one device and the addresses of another, to find out what the
// simulation would do if its driver placed memory as the measured one did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "sim/device/forwarding_device.h"
#include "sim/device/watched_device.h"
#include "trace/value/units.h"

namespace memreplay {

// A device whose inner device decides whether memory is granted. A segment or reservation is placed
// where the next one of the same kind and size in `calls` was placed within the same request. If
// there is no such counterpart, or it would overlap memory that is held, it gets an address of its
// own, from kInventedBase up. O(log regions) per call.
class RelocatedDevice final : public ForwardingDevice {
 public:
  // Lies above every address of a CUDA device (49 bits).
  static constexpr Address kInventedBase = Address(uint64_t{1} << 57);

  // Both must outlive this.
  RelocatedDevice(Device& device, absl::Span<const MemoryCall> calls);

  void OnRequest(size_t request) override;

  std::optional<Address> AllocateSegment(Bytes size) override;
  void FreeSegment(Address address, Bytes size) override;
  std::optional<Address> ReserveRange(Bytes size) override;
  void ReleaseRange(Address address, Bytes size) override;
  bool MapPages(Address address, Bytes size, Bytes page) override;
  void UnmapPages(Address address, Bytes size, Bytes page) override;

  // Returns the number of segments and reservations without a counterpart.
  uint64_t invented() const { return invented_; }

 private:
  struct Region {
    Address inner;
    Bytes size;
  };

  Address Place(MemoryCall::Kind kind, Bytes size, Address inner);
  bool IsHeld(Address address, Bytes size) const;
  Address Inner(Address address) const;

  const absl::Span<const MemoryCall> calls_;
  uint32_t request_ = kBeforeFirstRequest;
  size_t next_ = 0;  // calls before it were followed, or belong to earlier requests
  Address invented_end_ = kInventedBase;
  uint64_t invented_ = 0;
  std::map<Address, Region> held_;
};

}  // namespace memreplay
