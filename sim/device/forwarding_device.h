// A device that passes everything on to another. It is the base class of devices that watch or
// change some of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/model/device.h"
#include "trace/value/units.h"

namespace memreplay {

// A device that passes every call on to another one.
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

}  // namespace memreplay
