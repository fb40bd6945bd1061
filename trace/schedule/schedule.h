// A validated sequence of requests for one device, ready to be replayed by any
// number of threads at once, with what the file recorded as having happened.
#ifndef MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_H_
#define MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_H_

#include <cstdint>
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
  // Extent of its block if it is still live at the end (the final state lists
  // it); unknown if it was freed inside the trace.
  std::optional<Bytes> block_size;
  BlockState state = BlockState::kAllocated;
  uint32_t stream = 0;
  uint32_t stack = 0;
  uint32_t pending_stream = 0;  // kPendingFree: the stream that the free waits for
};

// Pools of recorded events, where the file does not name them and they were found out otherwise.
struct InferredPools {
  std::vector<PoolId> pools;       // the trace's, and after them those that no file names
  std::vector<uint16_t> of_event;  // of each event of the device, in `pools`; empty: none inferred
};

// Immutable after Build(). Thread-safe to read.
class Schedule {
 public:
  // `device_index` is a position in trace->devices. Takes shared ownership of
  // the tables. Never fails on defects of the trace: they become diagnostics.
  // O(events) time; memory about 12 bytes per event in addition to the trace, none for those of a
  // program that is expanded again.
  static Schedule Build(std::shared_ptr<const Trace> trace, size_t device_index,
                        InferredPools inferred = {});

  // The same without requests(), in half the time: for what asks about a recording alone and
  // replays nothing. Diagnostics are the reader's and those of pairing frees with allocations.
  static Schedule BuildRecorded(std::shared_ptr<const Trace> trace, size_t device_index,
                                InferredPools inferred = {});

  // The same recording with other requests: each of `from` is an index into requests(), or
  // RequestView::kOwn and an index into `own`. Ids of `own` may go up to `allocation_count`. What
  // was recorded stays as it is, so such a schedule is for what-ifs. The events must be kept, not
  // expanded again. O(events).
  Schedule WithRequests(absl::Span<const uint32_t> from, absl::Span<const Event> own,
                        uint32_t allocation_count) const;

  const Trace& trace() const { return *trace_; }
  const std::shared_ptr<const Trace>& shared_trace() const { return trace_; }
  size_t device_index() const { return device_index_; }  // in trace().devices
  int device() const { return trace_->devices[device_index_].device; }
  const DeviceTrace& device_trace() const { return trace_->devices[device_index_]; }
  bool is_program() const { return trace_->is_program; }

  // What is fed to an allocator: dense ids, in order; addresses are null (what
  // an allocator gives is its own affair). Requests that PyTorch does not record
  // (empty_cache, record_stream and its completion) are inferred for recorded
  // traces; a recorded oom stands for an alloc of its (rounded) size.
  RequestView requests() const {
    if (device_trace().events.source() != nullptr) return RequestView(events());
    return {events(), request_from_, own_requests_.data()};
  }

  // For each request the index in recorded() of the first event that belongs
  // to it (its effects may precede its own entry: segment_alloc before alloc);
  // they end where the next request's begin. Inferred requests without events
  // of their own have an empty range. Ascending. Empty for programs.
  absl::Span<const uint32_t> recorded_begin() const { return recorded_begin_; }

  // All events as recorded, with dense ids. Empty for programs.
  EventView recorded() const { return is_program() ? EventView() : events(); }

  // Live before the first event, ascending by address.
  absl::Span<const StartAllocation> start_allocations() const { return start_allocations_; }

  // The recording began at (or before) the first allocation of the device.
  bool is_cold() const { return is_cold_; }

  // State at the end, with dense ids; null if the file has none.
  const MemoryState* final_state() const { return has_final_state_ ? &final_state_ : nullptr; }

  uint32_t allocation_count() const { return allocation_count_; }
  // The trace's streams, and after them one for each free that completed late,
  // in the order in which they completed (PyTorch does not record which streams
  // those were). The latter's handles are made up, above all of the trace's.
  uint32_t stream_count() const { return stream_count_; }
  StreamHandle stream_handle(uint32_t stream) const;

  // What Event::pool is a position in: the trace's, or inferred ones.
  const std::vector<PoolId>& pools() const {
    return inferred_.of_event.empty() ? trace_->pools : inferred_.pools;
  }

  // The reader's and the builder's.
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  friend class ScheduleBuilder;
  Schedule() = default;

  EventView events() const {
    const std::vector<uint16_t>& pools = inferred_.of_event.empty() ? pools_ : inferred_.of_event;
    return EventView(device_trace().events, ids_.data(), pools.empty() ? nullptr : pools.data());
  }

  std::shared_ptr<const Trace> trace_;
  size_t device_index_ = 0;
  std::vector<AllocationId> ids_;       // of each event of the device
  std::vector<uint16_t> pools_;         // likewise; empty: the events' own
  InferredPools inferred_;              // goes before `pools_`
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

// Returns the event of the file that stands for a request: of an allocation its alloc or
// oom, which the segments obtained for it precede; of any other request its
// first, or, without one, where it would stand. Of a program: the request itself.
uint64_t EventOfRequest(const Schedule& schedule, size_t request);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_SCHEDULE_SCHEDULE_H_
