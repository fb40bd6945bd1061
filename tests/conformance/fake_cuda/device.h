// The one fake device of a process, shared by the fake driver and the fake runtime.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "fake_memory.h"

namespace memreplay::fake {

struct Event {
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;  // 0: never recorded
};

struct Device {
  std::mutex mutex;
  Memory memory;
  bool explicit_completion = false;
  bool capturing = false;
  std::uint64_t sequence = 0;
  std::unordered_map<std::uint64_t, std::uint64_t>
      done;  // stream -> last completed sequence number
  std::unordered_map<int, std::uint64_t> streams_of_priority;  // priority -> streams created

  bool complete(const Event& event) {
    if (!explicit_completion || event.sequence == 0) return true;
    const auto last = done.find(event.stream);
    return last != done.end() && event.sequence <= last->second;
  }
  void finish(std::uint64_t stream, std::uint64_t until) {
    std::uint64_t& last = done[stream];
    if (last < until) last = until;
  }
};

Device& device();  // defined in the fake driver

}  // namespace memreplay::fake
