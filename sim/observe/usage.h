// How much memory is allocated, active, reserved and requested, after every event of a run or of a
// recording. docs/metrics.md has the definitions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/model/observer.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

enum class UsageKind : uint8_t { kAllocated, kActive, kReserved, kRequested };
inline constexpr size_t kUsageKinds = 4;

// Returns PyTorch's name: "allocated_bytes", "active_bytes", "reserved_bytes" or "requested_bytes".
std::string_view UsageName(UsageKind kind);

// The four figures at one moment, in bytes.
struct Usage {
  std::array<Bytes, kUsageKinds> bytes;

  Bytes& operator[](UsageKind kind) { return bytes[static_cast<size_t>(kind)]; }
  Bytes operator[](UsageKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  Bytes allocated() const { return (*this)[UsageKind::kAllocated]; }
  Bytes active() const { return (*this)[UsageKind::kActive]; }
  Bytes reserved() const { return (*this)[UsageKind::kReserved]; }
  Bytes requested() const { return (*this)[UsageKind::kRequested]; }
  friend bool operator==(const Usage&, const Usage&) = default;
};

// Returns the usage of a listed state.
Usage UsageOf(const MemoryState& state);

// An observer that computes usage from events only. A few additions per event and no allocation
// make it cheap enough to be always on. An event without block_size (not every file contains it)
// counts with its size; blocks_estimated() returns how many there were. Peaks are those of the
// whole run: kResetPeak does not restart them (the allocator's statistics do that).
class UsageObserver final : public Observer {
 public:
  static constexpr uint64_t kAtStart = ~uint64_t{0};

  UsageObserver() : UsageObserver(Usage{}) {}
  // `start` is the usage before the first event.
  explicit UsageObserver(const Usage& start);

  Needs needs() const override { return {.requests = false}; }
  void OnStartEvent(const Event& event) override { OnEvent(event); }
  // Counts what is live then as present before the first event.
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  [[gnu::always_inline]] void OnEvent(const Event& event) override {
    const Bytes block = event.block_size == Bytes(0) ? event.size : event.block_size;
    switch (event.kind) {
      case EventKind::kAlloc:
        Increase(UsageKind::kAllocated, block);
        Increase(UsageKind::kActive, block);
        Increase(UsageKind::kRequested, event.size);
        blocks_estimated_ += event.block_size == Bytes(0);
        break;
      case EventKind::kFree: current_[UsageKind::kAllocated] -= block; break;
      case EventKind::kFreeCompleted:
        current_[UsageKind::kActive] -= block;
        current_[UsageKind::kRequested] -= event.size;
        break;
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentMap: Increase(UsageKind::kReserved, event.size); break;
      case EventKind::kSegmentFree:
      case EventKind::kSegmentUnmap: current_[UsageKind::kReserved] -= event.size; break;
      default: break;
    }
    ++events_;
  }

  const Usage& current() const { return current_; }
  const Usage& peak() const { return peak_; }
  // Returns the index of the event that first reached the peak, or kAtStart if it was the start
  // state.
  uint64_t peak_event(UsageKind kind) const { return peak_event_[static_cast<size_t>(kind)]; }
  uint64_t events() const { return events_; }  // number of events so far
  // Returns how often a peak rose, so that an observer can see that none did.
  uint64_t rises() const { return rises_; }
  uint64_t blocks_estimated() const { return blocks_estimated_; }

 private:
  [[gnu::always_inline]] void Increase(UsageKind kind, Bytes amount) {
    Bytes& now = current_[kind];
    now += amount;
    if (now > peak_[kind]) [[unlikely]] {
      peak_[kind] = now;
      peak_event_[static_cast<size_t>(kind)] = events_;
      ++rises_;
    }
  }

  Usage current_;
  Usage peak_;
  std::array<uint64_t, kUsageKinds> peak_event_;
  uint64_t events_ = 0;
  uint64_t blocks_estimated_ = 0;
  uint64_t rises_ = 0;
};

}  // namespace memreplay
