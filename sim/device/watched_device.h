// Devices that pass everything on to another: one remembers memory calls with their responses, how
// much was in use after each, and what is held; one places memory where such calls placed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// A device that passes every call on to another one. It is the base class of devices that watch or
// change some of it.
class ForwardingDevice : public Device {
 public:
  ForwardingDevice(const ForwardingDevice&) = delete;
  ForwardingDevice& operator=(const ForwardingDevice&) = delete;

  Bytes TotalMemory() const override { return device_.TotalMemory(); }
  Bytes FreeMemory() override { return device_.FreeMemory(); }
  std::optional<Address> AllocateSegment(Bytes size) override {
    return device_.AllocateSegment(size);
  }
  void FreeSegment(Address address, Bytes size) override { device_.FreeSegment(address, size); }
  std::optional<Address> ReserveRange(Bytes size) override { return device_.ReserveRange(size); }
  void ReleaseRange(Address address, Bytes size) override { device_.ReleaseRange(address, size); }
  bool MapPages(Address address, Bytes size, Bytes page) override {
    return device_.MapPages(address, size, page);
  }
  void UnmapPages(Address address, Bytes size, Bytes page) override {
    device_.UnmapPages(address, size, page);
  }
  StreamEvent RecordEvent(uint32_t stream) override { return device_.RecordEvent(stream); }
  bool IsComplete(const StreamEvent& event) override { return device_.IsComplete(event); }
  void Synchronize(const StreamEvent& event) override { device_.Synchronize(event); }
  bool CompletionIsReported() const override { return device_.CompletionIsReported(); }
  void StreamDone(uint32_t stream) override { device_.StreamDone(stream); }
  void FailNext(uint64_t count) override { device_.FailNext(count); }
  void TakeOutside(Bytes size) override { device_.TakeOutside(size); }
  void ReturnOutside(Bytes size) override { device_.ReturnOutside(size); }
  void OnRequest(size_t request) override { device_.OnRequest(request); }

 protected:
  // `device` must outlive this.
  explicit ForwardingDevice(Device& device) : device_(device) {}

  Device& device_;
};

// Not the number of a region. Segments and reservations are numbered together, in the order in
// which they were granted, so that two runs whose drivers choose other addresses agree in these
// numbers.
inline constexpr uint32_t kNoRegion = ~uint32_t{0};
// The MemoryCall::request of calls made before the first request (a start state).
inline constexpr uint32_t kBeforeFirstRequest = ~uint32_t{0};

// A place in a region of memory, wherever the region lies.
struct Place {
  uint32_t region = kNoRegion;
  Bytes offset;  // in the region
  friend bool operator==(const Place&, const Place&) = default;
};

// One memory call.
struct MemoryCall {
  enum class Kind : uint8_t { kAllocate, kFree, kReserve, kRelease, kMap, kUnmap };
  Kind kind = Kind::kAllocate;
  bool granted = true;
  Place place;      // without a region if refused
  Address address;  // null if refused
  Bytes size;
  Bytes page;        // kMap and kUnmap
  int64_t used = 0;  // bytes of the device in use after the call, in excess of the start
  uint32_t request = kBeforeFirstRequest;  // position in Schedule::requests()
};

// Returns "allocate", "free", "reserve", "release", "map" or "unmap".
std::string_view MemoryCallName(MemoryCall::Kind kind);

// A device that reads the free memory of another after each memory call, but not after calls for
// address ranges. O(log regions) per call.
class WatchedDevice final : public ForwardingDevice {
 public:
  // `device` must outlive this. `free_memory` returns how much is free if that differs from the
  // device's own count (a driver's, past a limit); null is the device's count.
  explicit WatchedDevice(Device& device, std::function<Bytes()> free_memory = nullptr);

  void OnRequest(size_t request) override {
    request_ = static_cast<uint32_t>(request);
    device_.OnRequest(request);
  }

  std::optional<Address> AllocateSegment(Bytes size) override;
  void FreeSegment(Address address, Bytes size) override;
  std::optional<Address> ReserveRange(Bytes size) override;
  void ReleaseRange(Address address, Bytes size) override;
  bool MapPages(Address address, Bytes size, Bytes page) override;
  void UnmapPages(Address address, Bytes size, Bytes page) override;
  void TakeOutside(Bytes size) override;
  void ReturnOutside(Bytes size) override;

  // Returns the place of an address. A released region counts until another takes its place.
  Place PlaceOf(Address address) const;

  absl::Span<const MemoryCall> calls() const { return calls_; }

  // Logs that the driver's own pool grew or shrank by `size`. This is like pages that are mapped or
  // unmapped, although there is nothing to release.
  void NotePoolChange(bool grew, Bytes size);

  // Frees, unmaps and releases whatever is still held. Does not log this.
  void ReleaseAll();
  // Returns what is in use now, as in MemoryCall::used.
  int64_t UsedNow() { return base_ - FreeNow(); }

 private:
  struct Region {
    Address address;
    Bytes size;
    bool is_reservation = false;
    bool is_held = true;
  };

  uint32_t AddRegion(Address address, Bytes size, bool is_reservation);
  void DropRegion(Address address);
  void Log(MemoryCall::Kind kind, Address address, Bytes size, Bytes page, bool granted);
  // Runs `change`, whose effect on free memory does not count as use by the allocator.
  template <typename Change>
  void ShiftBase(const Change& change);

  int64_t FreeNow() {
    return (free_memory_ ? free_memory_() : device_.FreeMemory()).signed_value();
  }

  const std::function<Bytes()> free_memory_;
  int64_t base_;  // free memory of the device if the allocator had none
  int64_t used_ = 0;
  uint32_t request_ = kBeforeFirstRequest;
  std::vector<Region> regions_;
  std::map<Address, uint32_t> by_address_;  // the newest region that begins at each
  std::map<Address, Bytes> pages_;          // sizes of mapped ones
  std::vector<MemoryCall> calls_;
};

// A device with the responses of one device and the addresses of another, to find out what the
// simulation would do if its driver placed memory as the measured one did. The inner device decides
// whether memory is granted. A segment or reservation is placed
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
