// A validated sequence of requests for one device, with what the file recorded about them. Any
// number of threads can replay it at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trace/schedule/event_view.h"
#include "trace/value/diagnostics.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// An allocation that was live when the recording began.
struct StartAllocation {
  AllocationId id = kNoAllocation;
  Address address;
  Bytes requested_size;
  // The extent of a block that is still live at the end, from the final state; unknown if it was
  // freed in the trace.
  std::optional<Bytes> block_size;
  BlockState state = BlockState::kAllocated;
  uint32_t stream = 0;
  uint32_t stack = 0;
  uint32_t pending_stream = 0;  // kPendingFree: the stream that the free waits for
};

// Inferred pools of recorded events, for files that do not name them.
struct InferredPools {
  std::vector<PoolId> pools;       // the trace's pools, followed by those that no file names
  std::vector<uint16_t> of_event;  // of each event of the device, in `pools`; empty: none inferred
  std::vector<uint64_t> flags;     // PoolFlags of the first pools; the others have none
};

// The requests and recorded events of one device. Immutable after Build(). Thread-safe to read.
class Schedule {
 public:
  // Builds the schedule of the device at `device_index` in trace->devices and shares ownership of
  // the tables. Never fails on defects of the trace, which become diagnostics. O(events) time;
  // about 12 bytes of memory per event in addition to the trace, and none for a program that is
  // expanded again. `take_recorded`, if any, is called for a recording as soon as BuildRecorded()'s
  // schedule is known, which another thread may use while the requests are made.
  static Schedule Build(std::shared_ptr<const Trace> trace, size_t device_index,
                        InferredPools inferred = {},
                        const std::function<void(Schedule)>& take_recorded = nullptr);

  // Builds a schedule without requests(), in half the time, for questions about a recording alone
  // that replay nothing. Its diagnostics are those of the reader and of pairing frees with
  // allocations.
  static Schedule BuildRecorded(std::shared_ptr<const Trace> trace, size_t device_index,
                                InferredPools inferred = {});

  // Returns the same recording with other requests, for what-ifs: each of `from` is an index into
  // requests(), or RequestView::kOwn plus an index into `own`. Ids of `own` are below
  // `allocation_count`. The recorded events do not change; they must be kept, not expanded again.
  // O(events).
  Schedule WithRequests(absl::Span<const uint32_t> from, absl::Span<const Event> own,
                        uint32_t allocation_count) const;

  // Returns the same requests and the same start with other sizes, for what-ifs; `sizes` has that
  // of each allocation, by id. The rest is as of WithRequests(). O(events).
  Schedule WithSizes(absl::Span<const Bytes> sizes) const;

  const Trace& trace() const { return *trace_; }
  const std::shared_ptr<const Trace>& shared_trace() const { return trace_; }
  size_t device_index() const { return device_index_; }  // index into trace().devices
  int device() const { return trace_->devices[device_index_].device; }
  const DeviceTrace& device_trace() const { return trace_->devices[device_index_]; }
  bool is_program() const { return trace_->is_program; }

  // Returns the input of an allocator, with dense ids, in order. Addresses are null, since the
  // allocator chooses them. For recorded traces, requests that PyTorch does not record
  // (empty_cache, record_stream and its completion) are inferred, and an oom stands for an alloc of
  // its (rounded) size.
  RequestView requests() const {
    if (device_trace().events.source() != nullptr) return RequestView(events());
    return {events(), request_from_, own_requests_.data()};
  }

  // Returns, for each request, the index in recorded() of its first event (effects such as
  // segment_alloc may precede its own entry); its events end where those of the next request begin.
  // Inferred requests without events have an empty range. Ascending. Empty for programs.
  absl::Span<const uint32_t> recorded_begin() const { return recorded_begin_; }

  // Returns all recorded events with dense ids. Empty for programs.
  EventView recorded() const { return is_program() ? EventView() : events(); }

  // Returns the indices in recorded() of the events of segments. Ascending. Empty for programs.
  absl::Span<const uint32_t> segment_events() const { return segment_events_; }

  // Returns the allocations that were live before the first event, ascending by address.
  absl::Span<const StartAllocation> start_allocations() const { return start_allocations_; }

  // Returns whether the recording began at (or before) the first allocation of the device.
  bool is_cold() const { return is_cold_; }

  // Returns the state at the end, with dense ids; null if the file has none.
  const MemoryState* final_state() const { return has_final_state_ ? &final_state_ : nullptr; }

  uint32_t allocation_count() const { return allocation_count_; }
  // The streams are those of the trace, followed by one for each free that completed late, in order
  // of completion (PyTorch does not record which streams those were). The handles of the latter are
  // invented and above all of the trace's.
  uint32_t stream_count() const { return stream_count_; }
  StreamHandle stream_handle(uint32_t stream) const;

  // Returns the pools that Event::pool is an index into: the trace's, or inferred ones.
  const std::vector<PoolId>& pools() const {
    return inferred_.of_event.empty() ? trace_->pools : inferred_.pools;
  }

  // Returns kPoolNoSplit for the recording's pools of which Python noted it or it is inferred, by
  // pool; those that are not listed have no flags. A program has a request for each pool instead.
  const std::vector<uint64_t>& pool_flags() const { return inferred_.flags; }

  // Returns the diagnostics of the reader and the builder.
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  friend class ScheduleBuilder;
  Schedule() = default;

  EventView events() const {
    const std::vector<uint16_t>& pools = inferred_.of_event.empty() ? pools_ : inferred_.of_event;
    return EventView(device_trace().events, ids_ == nullptr ? nullptr : ids_->data(),
                     pools.empty() ? nullptr : pools.data());
  }

  std::shared_ptr<const Trace> trace_;
  size_t device_index_ = 0;
  std::shared_ptr<std::vector<AllocationId>> ids_;  // of each event of the device; not null if kept
  std::vector<uint16_t> pools_;                     // likewise; empty: the events' own
  InferredPools inferred_;                          // overrides `pools_`
  std::vector<uint32_t> segment_events_;
  std::vector<uint32_t> request_from_;  // see RequestView
  std::vector<Event> own_requests_;
  std::vector<uint32_t> recorded_begin_;
  std::vector<StartAllocation> start_allocations_;
  bool is_cold_ = true;
  bool has_final_state_ = false;
  MemoryState final_state_;
  uint32_t allocation_count_ = 0;
  uint32_t stream_count_ = 0;
  Diagnostics diagnostics_;
};

// Returns the event of the file that stands for a request: the alloc or oom of an allocation (the
// segments obtained for it precede it), the first event of any other request or, if it has none,
// the position where it would be. For a program it is the request itself.
uint64_t EventOfRequest(const Schedule& schedule, size_t request);

}  // namespace memreplay
