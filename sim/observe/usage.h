// How much memory is allocated, active, reserved and requested, after every event of a run or of a
// recording; and the moments of a run that its result reports: where each of these first peaked,
// the fullest moment at the reserved peak, and what ran out of memory. docs/metrics.md has the
// definitions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/device/watched_device.h"
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
// counts with its size. Peaks are those of the whole run: kResetPeak does not restart them (the
// allocator's statistics do that).
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
  uint64_t rises_ = 0;
};

// A request that ran out of memory.
struct OomMoment {
  uint32_t request = 0;  // position in Schedule::requests()
  Bytes size;            // rounded, as the allocator looked for it
  Bytes free;            // of the device at that moment
};

// The start of a run, or the moment after one of its alloc or oom events.
struct Moment {
  uint32_t request = kBeforeFirstRequest;    // position in Schedule::requests()
  uint64_t event = UsageObserver::kAtStart;  // index among the events of the run
  Usage usage;
};

// When a run reached its peaks. WhatIfResult, SampledReplay and DeviceRun contain it.
struct Moments {
  uint64_t requests = 0;  // applied
  // The request of each peak, by UsageKind, or kBeforeFirstRequest for the start.
  std::array<uint32_t, kUsageKinds> peak_request = {};
  // The moment at which reserved memory is at its peak and active memory is highest; the first if
  // there are several. What is unused then is waste; earlier, most of it may merely wait for
  // tensors that are about to be allocated.
  Moment at_peak;
  // The event at which reserved memory grew, on its way to the peak, by the most that cached memory
  // might have served: the largest min(growth, unused before). kAtStart if there is none.
  uint64_t cause_event = UsageObserver::kAtStart;
};

// An observer that finds the moments of a run. O(1) per event.
class MomentsObserver final : public Observer {
 public:
  // `usage` must see everything before this does, and must outlive it.
  explicit MomentsObserver(const UsageObserver& usage) : usage_(usage) {}
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  [[gnu::always_inline]] void OnRequest(size_t request) override {
    request_ = static_cast<uint32_t>(request);
    unused_before_ = usage_.current().reserved() - usage_.current().allocated();
    ++moments_.requests;
  }
  [[gnu::always_inline]] void OnEvent(const Event& event) override {
    if (event.kind == EventKind::kOom) [[unlikely]] {
      ooms_.push_back({request_, event.size, event.device_free()});
    } else if (event.kind != EventKind::kAlloc) {
      return;
    }
    const Usage& now = usage_.current();
    const Usage& most = moments_.at_peak.usage;
    const bool is_fullest = now.reserved() > most.reserved() ||
                            (now.reserved() == most.reserved() && now.active() > most.active());
    if (is_fullest || usage_.rises() != rises_) [[unlikely]] {
      Look(is_fullest);
    }
  }

  const Moments& moments() const { return moments_; }
  const std::vector<OomMoment>& ooms() const { return ooms_; }

 private:
  // Called after an allocation, granted or refused, that made the moment the fullest or with which
  // a peak rose: usage grows within a request for memory, whose last event is one of the two. It
  // does not read the event, which the compiler then need not write to memory.
  [[gnu::noinline]] void Look(bool is_fullest);

  const UsageObserver& usage_;
  Usage peak_;
  uint64_t rises_ = 0;   // UsageObserver::rises() when peak_ was read
  Bytes unused_before_;  // when the request arrived
  Bytes most_avoidable_;
  uint32_t request_ = kBeforeFirstRequest;
  Moments moments_;
  std::vector<OomMoment> ooms_;
};

}  // namespace memreplay
