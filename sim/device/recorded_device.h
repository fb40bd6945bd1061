// A device that responds as the driver did in a recording.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/model/device.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// What a recording shows about the memory that PyTorch could get, in bytes of segments and mapped
// pages, excluding other use of the GPU.
struct GpuLimits {
  Bytes granted;  // PyTorch could get this much: the maximum in use at once
  // What would have been in use, for each refusal of the driver.
  std::vector<Bytes> refusals;
  // Memory in use and free when it ran out of memory, the last time.
  std::optional<Bytes> at_oom;
  // The GPU's memory, if a script that limited PyTorch to a share of it said so.
  std::optional<Bytes> total;
  // Returns the size that PyTorch could not get: the smallest refusal above `granted`. Smaller ones
  // are not refusals: empty_cache() just before new memory looks the same in a recording.
  std::optional<Bytes> refused() const;
};

// A device that takes segment addresses, reservation bases and refusals from the recorded events of
// the current request. A refusal is not recorded as such: it shows because the next recorded effect
// is a release, or an out of memory, where the allocator requests memory. A call without a recorded
// answer (because the simulation has diverged) succeeds, at addresses from kInventedBase up to
// kInventedEnd; so does a call that the recording answers with memory that the simulation still
// holds. Streams complete when StreamDone() says so.
// Each call is O(events of the request), but O(events) for a reservation in which nothing is mapped
// at once.
class RecordedDevice final : public Device {
 public:
  // Lies above every address of a CUDA device (49 bits).
  static constexpr Address kInventedBase = kAddressesEnd;
  static constexpr Address kInventedEnd = Address(uint64_t{1} << 62);

  // `total_memory` determines the size of reservations and what a memory fraction refers to;
  // recordings do not contain it. `schedule` must outlive this.
  RecordedDevice(const Schedule& schedule, Bytes total_memory);

  // Adds segments and mapped ranges that exist before the first request.
  void Hold(const MemoryState& segments);

  void OnRequest(size_t request) override;

  Bytes TotalMemory() const override { return total_memory_; }
  // Returns the free memory according to the recorded oom of this request, or zero if there is
  // none.
  Bytes FreeMemory() override;
  std::optional<Address> AllocateSegment(Bytes size) override;
  void FreeSegment(Address address, Bytes size) override;
  std::optional<Address> ReserveRange(Bytes size) override;
  void ReleaseRange(Address address, Bytes size) override;
  bool MapPages(Address address, Bytes size, Bytes page) override;
  void UnmapPages(Address address, Bytes size, Bytes page) override;
  StreamEvent RecordEvent(uint32_t stream) override { return streams_.Record(stream); }
  bool IsComplete(const StreamEvent& event) override { return streams_.IsComplete(event); }
  void Synchronize(const StreamEvent& event) override { streams_.Synchronize(event); }
  bool CompletionIsReported() const override { return true; }
  void StreamDone(uint32_t stream) override { streams_.Done(stream); }
  void FailNext(uint64_t count) override { failures_ = count; }

  // Returns the number of responses that are not in the recording.
  uint64_t invented() const { return invented_; }
  // Returns the limits according to the responses so far that come from the recording.
  const GpuLimits& limits() const { return limits_; }

 private:
  struct Reservation {
    Address base;
    Bytes size;
    // The pages of one reservation are of one stream and pool, small or large.
    uint32_t stream;
    uint16_t pool;
    bool is_large;
  };

  // Returns the request's next event that concerns the driver, or null at its end. Valid until
  // the next call.
  const Event* NextEffect();
  void Consume(EventKind kind, Address address, Bytes size);
  bool InjectedFailure();
  std::optional<Address> Invent(Bytes size);
  Address FirstPagesLater(const Event& request) const;
  void Release(Address address, Bytes size);  // removes from held_
  bool IsHeld(Address address, Bytes size) const;
  bool IsFree(Address address, Bytes size) const;  // neither held nor beyond every address
  void Add(Address address, Bytes size);           // adds to held_
  // Takes the memory of the request's next event.
  void Grant(Address address, Bytes size);
  void NoteGrant();
  void NoteRefusal(Bytes size);

  const Schedule& schedule_;
  const Bytes total_memory_;
  size_t request_ = 0;
  Event effect_;     // NextEffect()'s
  size_t next_ = 0;  // recorded events of the current request: [next_, end_)
  size_t end_ = 0;
  Address invented_end_ = kInventedBase;
  uint64_t invented_ = 0;
  uint64_t failures_ = 0;
  std::vector<Reservation> reservations_;
  std::map<Address, Bytes> held_;  // segments and pages, disjoint
  Bytes held_bytes_;
  GpuLimits limits_;
  StreamTickets streams_;
};

}  // namespace memreplay
