// A recording that repeats a step, written by hand.
#pragma once

#include <cstdint>
#include <string>

#include "trace/value/trace.h"

namespace memreplay {

// A recording of one device, written by hand; addresses are never reused. Stacks
// that were not made with Stack() are of one frame of C++.
class MadeLoop {
 public:
  MadeLoop() {
    trace_.streams = {StreamHandle(0)};
    trace_.devices.emplace_back();
  }
  uint64_t Alloc(Bytes size, uint32_t stack) {
    next_ += 1 << 30;
    Add(EventKind::kAlloc, next_, size, stack);
    return next_;
  }
  uint64_t Alloc(uint64_t mib, uint32_t stack) { return Alloc(MiB(mib), stack); }
  void Free(uint64_t address, Bytes size) {
    Add(EventKind::kFree, address, size, 0);
    Add(EventKind::kFreeCompleted, address, size, 0);
  }
  void Free(uint64_t address, uint64_t mib) { Free(address, MiB(mib)); }
  // Returns a stack of one frame: `file` as in "train.py".
  uint32_t Stack(const std::string& file, const std::string& name) {
    const uint32_t frame =
        trace_.stacks.InternFrame({trace_.strings.Intern(file), trace_.strings.Intern(name), 1});
    return trace_.stacks.InternStack({&frame, 1});
  }
  const DeviceTrace& device() const { return trace_.devices[0]; }
  Trace trace_;

 private:
  void Add(EventKind kind, uint64_t address, Bytes size, uint32_t stack) {
    while (trace_.stacks.size() <= stack) {
      Stack("op.cpp", "f" + std::to_string(trace_.stacks.size()));
    }
    Event event;
    event.kind = kind;
    event.address = Address(address);
    event.size = size;
    event.text_or_stack = stack;
    trace_.devices[0].events.push_back(event);
  }

  uint64_t next_ = 0;
};

}  // namespace memreplay
