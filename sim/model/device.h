// What an allocator may request of a GPU. It is implemented by SimulatedDevice, by the device that
// repeats the responses in a recording, and by a real GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "trace/value/units.h"

namespace memreplay {

// A point in a stream's work, as from cudaEventRecord.
struct StreamEvent {
  uint32_t stream = 0;
  uint64_t ticket = 0;  // grows by one per stream
};

// The points recorded in the streams of a device without work of its own, and which of them are
// complete: those up to the last one that was waited for, or all when the stream is said to be
// done.
class StreamTickets {
 public:
  StreamEvent Record(uint32_t stream) { return {stream, ++Of(stream).recorded}; }
  bool IsComplete(const StreamEvent& event) { return event.ticket <= Of(event.stream).completed; }
  void Synchronize(const StreamEvent& event) {
    uint64_t& completed = Of(event.stream).completed;
    completed = std::max(completed, event.ticket);
  }
  void Done(uint32_t stream) { Of(stream).completed = Of(stream).recorded; }

 private:
  struct Progress {
    uint64_t recorded = 0;   // tickets issued
    uint64_t completed = 0;  // tickets up to here are complete
  };
  Progress& Of(uint32_t stream) {
    if (stream >= streams_.size()) streams_.resize(stream + 1);
    return streams_[stream];
  }
  std::vector<Progress> streams_;
};

// Counts of driver calls. The time per call depends on GPU and driver and is not known here.
struct DeviceCalls {
  uint64_t segment_allocs = 0;  // cudaMalloc, including refused ones
  uint64_t segment_frees = 0;   // cudaFree; each waits for the whole device
  uint64_t maps = 0;            // pages created and mapped, including refused ones
  uint64_t unmaps = 0;          // pages unmapped and released
  uint64_t waits = 0;           // for an event, one by one
  uint64_t total() const { return segment_allocs + segment_frees + maps + unmaps + waits; }
  friend bool operator==(const DeviceCalls&, const DeviceCalls&) = default;
};

// A range of addresses.
struct Piece {
  Address address;
  Bytes size;
};

// A device with memory, address space and streams. Out of memory is a response (nullopt, false),
// never an error.
class Device {
 public:
  virtual ~Device() = default;

  // Called before the request with this index in Schedule::requests(), for devices that repeat what
  // happened then or log it.
  virtual void OnRequest(size_t /*request*/) {}
  // Returns whether that must be called. A run reads this once, before it starts.
  virtual bool needs_requests() const { return true; }

  // Returns cudaDeviceProp::totalGlobalMem, a constant.
  virtual Bytes TotalMemory() const = 0;
  // Returns the first result of cudaMemGetInfo.
  virtual Bytes FreeMemory() = 0;

  // Do what cudaMalloc and cudaFree do. `size` is the requested size; the device rounds it.
  virtual std::optional<Address> AllocateSegment(Bytes size) = 0;
  virtual void FreeSegment(Address address, Bytes size) = 0;
  // Allocates the segments that a recording began with, ascending by recorded address, and returns
  // their addresses on this device in the same order. Returns nullopt if there is no room; what was
  // allocated until then stays allocated.
  virtual std::optional<std::vector<Address>> AllocateStart(absl::Span<const Piece> segments);

  // Do what cuMemAddressReserve and cuMemAddressFree do. Returns nullopt if no addresses are left.
  virtual std::optional<Address> ReserveRange(Bytes size) = 0;
  virtual void ReleaseRange(Address address, Bytes size) = 0;
  // Creates and maps pages of `page` bytes over [address, address + size), one by one in ascending
  // order; both are multiples of `page`. Returns false if a page could not be created; none of this
  // call's pages remains then.
  virtual bool MapPages(Address address, Bytes size, Bytes page) = 0;
  virtual void UnmapPages(Address address, Bytes size, Bytes page) = 0;

  // Record, query and wait for the progress of a stream.
  virtual StreamEvent RecordEvent(uint32_t stream) = 0;
  virtual bool IsComplete(const StreamEvent& event) = 0;
  virtual void Synchronize(const StreamEvent& event) = 0;
  // Returns whether events that are not complete when recorded complete only through StreamDone()
  // and Synchronize(), so that polling them before is unnecessary.
  virtual bool CompletionIsReported() const { return false; }
  // Informs the device that all work recorded on `stream` so far is complete.
  virtual void StreamDone(uint32_t stream) = 0;

  // Injects faults: the next `count` segment allocations or page creations fail as if memory were
  // exhausted. Replaces an earlier count. A call that would have failed anyway also uses up one of
  // them.
  virtual void FailNext(uint64_t count) = 0;

  // Take or return memory outside the allocator (kOutsideAlloc: NCCL, a context and others). They
  // always succeed; devices that do not support them ignore them.
  virtual void TakeOutside(Bytes /*size*/) {}
  virtual void ReturnOutside(Bytes /*size*/) {}
};

inline std::optional<std::vector<Address>> Device::AllocateStart(absl::Span<const Piece> segments) {
  std::vector<Address> addresses;
  for (const Piece& segment : segments) {
    const std::optional<Address> address = AllocateSegment(segment.size);
    if (!address.has_value()) return std::nullopt;
    addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace memreplay
