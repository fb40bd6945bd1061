// A GPU of any size that exists only as arithmetic, and the time that its driver calls would take.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "hardware/driver_addresses.h"
#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// A cost in nanoseconds by size, as measured on a GPU, so that counts of driver calls can be turned
// into an estimate of their time. It is interpolated linearly between measured sizes, constant
// below the smallest, and proportional to the size above the largest.
class CostBySize {
 public:
  // Sets the cost of a size. Sizes may be set in any order; a later call replaces an earlier one
  // for the same size.
  void Set(Bytes size, double nanoseconds) { points_[size] = nanoseconds; }
  // Returns 0 if nothing was measured. O(log sizes).
  double At(Bytes size) const;
  bool empty() const { return points_.empty(); }

 private:
  std::map<Bytes, double> points_;
};

// The costs of one call, or of one page. Waits are not included, because they take as long as the
// script's work. A refused call is assumed to cost as much as a granted one.
struct CallCosts {
  CostBySize segment_alloc;  // cudaMalloc
  CostBySize segment_free;   // cudaFree on an idle GPU
  CostBySize map;            // a page created, mapped and made accessible
  CostBySize unmap;          // a page unmapped and released
};

// A simulated GPU with the following address rules:
//   * AllocateSegment(n) places from kSegmentBase to kSegmentEnd in Options::order
//     (hardware/driver_addresses.h). If that is upwards, the driver takes nothing before the
//     first kernel, because a schedule does not say when that runs. The conformance harness's
//     fake CUDA runtime does the same, so that addresses can be compared.
//   * ReserveRange(n) places upwards from kReservationBase and needs no capacity.
//   * AllocateStart() keeps the recorded order, and what touched still touches. What lay between
//     is not free, because its owner is unknown.
//   * Segments and mapped pages count against the capacity in whole units of 2 MiB. The rest of a
//     capacity that is no multiple of 2 MiB is never handed out, although FreeMemory() counts it.
// Allocation, release and reservation are O(log live segments), mapping is O(1). Freeing memory
// that does not exist stops the process. The allocator decides where pages are mapped inside a
// reservation; this is not checked.
class SimulatedDevice final : public Device {
 public:
  static constexpr Address kSegmentBase = Address(0x7f0000000000);
  static constexpr Address kSegmentEnd = Address(0x7fff00000000);
  static constexpr Address kReservationBase = Address(0x100000000000);
  static constexpr Address kReservationEnd = Address(0x7e0000000000);
  // The memory that an unlimited device reports: more than any GPU has today, so that a reservation
  // (9/8 of it) holds whatever a script requests.
  static constexpr Bytes kUnlimitedTotal = GiB(1024);

  struct Options {
    // Device memory; kMaxDeviceMemory stands for more. If absent, kMaxDeviceMemory is granted, and
    // FreeMemory() is what is left of TotalMemory(), at least 0.
    std::optional<Bytes> capacity;
    // TotalMemory(). If absent, it is the capacity or else kUnlimitedTotal.
    std::optional<Bytes> total = std::nullopt;
    AddressOrder order = AddressOrder::kUpwards;
    // Whether recorded stream work is pending until StreamDone() or Synchronize(), instead of
    // complete at once.
    bool explicit_completion = false;
    // The cost of calls, for call_nanoseconds(); not owned. Null if unknown.
    const CallCosts* costs = nullptr;
  };

  explicit SimulatedDevice(const Options& options);
  // Creates a device of `capacity` bytes whose streams complete at once.
  explicit SimulatedDevice(Bytes capacity) : SimulatedDevice(Options{.capacity = capacity}) {}

  bool needs_requests() const override { return false; }
  Bytes TotalMemory() const override { return total_; }
  Bytes FreeMemory() override;
  std::optional<Address> AllocateSegment(Bytes size) override;
  void FreeSegment(Address address, Bytes size) override;
  // Must be called before any segment is allocated. Segments must end below kAddressesEnd. Also
  // returns nullopt if two of them share one of the whole units of 2 MiB.
  std::optional<std::vector<Address>> AllocateStart(absl::Span<const Piece> segments) override;
  std::optional<Address> ReserveRange(Bytes size) override;
  void ReleaseRange(Address address, Bytes size) override;
  bool MapPages(Address address, Bytes size, Bytes page) override;
  void UnmapPages(Address address, Bytes size, Bytes page) override;
  StreamEvent RecordEvent(uint32_t stream) override { return streams_.Record(stream); }
  bool IsComplete(const StreamEvent& event) override {
    return !explicit_completion_ || streams_.IsComplete(event);
  }
  void Synchronize(const StreamEvent& event) override {
    ++calls_.waits;
    streams_.Synchronize(event);
  }
  bool CompletionIsReported() const override { return true; }
  void StreamDone(uint32_t stream) override { streams_.Done(stream); }
  void FailNext(uint64_t count) override { failures_ = count; }
  void TakeOutside(Bytes size) override;  // kMaxDeviceMemory in total at most
  void ReturnOutside(Bytes size) override;

  const DeviceCalls& calls() const { return calls_; }
  // Returns the size of the smallest device on which a refused request would have been granted, or
  // nullopt if none was refused. On smaller devices every run of the same requests is the same as
  // this one.
  std::optional<Bytes> same_until() const { return same_until_; }
  // Returns the time that the calls would have taken according to Options::costs, without waits.
  double call_nanoseconds() const { return call_nanoseconds_; }

 private:
  Bytes Grantable() const;  // without the rest of the last unit
  // Takes `size` (whole units) out of the capacity. Returns whether it could.
  bool Charge(Bytes size);
  // Takes `size` bytes of segments_, else of spilled_segments_. Returns nullopt if all holes are
  // too small.
  std::optional<Address> TakeSegment(Bytes size);
  // Return false if there are no addresses for the segments.
  bool PlaceUpwards(absl::Span<const Piece> segments, std::vector<Address>* addresses);
  bool PlaceInChunks(absl::Span<const Piece> segments, std::vector<Address>* addresses);

  const Bytes capacity_;
  const Bytes total_;
  const bool unlimited_;
  const bool explicit_completion_;
  const CallCosts* const costs_;
  const AddressOrder order_;
  Bytes used_;     // whole units of segments and mapped pages
  Bytes outside_;  // taken by others
  std::optional<Bytes> same_until_;
  uint64_t failures_ = 0;
  DeviceCalls calls_;
  double call_nanoseconds_ = 0;
  DriverAddresses segments_;
  // Addresses above all of that, for devices beyond any real size.
  FreeAddresses spilled_segments_;
  FreeAddresses reservations_;
  absl::flat_hash_map<uint64_t, Bytes> segment_sizes_;      // by address, as requested
  absl::flat_hash_map<uint64_t, Bytes> reservation_sizes_;  // by address
  StreamTickets streams_;
};

}  // namespace memreplay
