// Small recordings and programs, written event by event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trace/schedule/schedule.h"
#include "trace/value/event.h"
#include "trace/value/trace.h"

namespace memreplay::testing {

// A trace of one device. Addresses, sizes and streams are plain numbers here;
// `stream` is an index of Trace::streams (handles 0, 16, 32 ...).
class Recording {
 public:
  Recording() {
    trace_->format = "test";
    trace_->devices.resize(1);
    trace_->streams = {StreamHandle(0), StreamHandle(16), StreamHandle(32)};
  }

  // Makes events added from here on carry this stack.
  Recording& Stack(uint32_t stack) {
    stack_ = stack;
    return *this;
  }
  Recording& Stream(uint32_t stream) {
    stream_ = stream;
    return *this;
  }
  Recording& Add(EventKind kind, uint64_t address, uint64_t size) {
    Event event;
    event.kind = kind;
    event.address = Address(address);
    event.size = Bytes(size);
    event.stream = stream_;
    event.text_or_stack = stack_;
    trace_->devices[0].events.push_back(event);
    return *this;
  }
  Recording& Alloc(uint64_t a, uint64_t n) { return Add(EventKind::kAlloc, a, n); }
  Recording& FreeRequested(uint64_t a, uint64_t n) { return Add(EventKind::kFree, a, n); }
  Recording& FreeCompleted(uint64_t a, uint64_t n) { return Add(EventKind::kFreeCompleted, a, n); }
  Recording& Free(uint64_t a, uint64_t n) { return FreeRequested(a, n).FreeCompleted(a, n); }
  Recording& SegmentAlloc(uint64_t a, uint64_t n) { return Add(EventKind::kSegmentAlloc, a, n); }
  Recording& SegmentFree(uint64_t a, uint64_t n) { return Add(EventKind::kSegmentFree, a, n); }
  Recording& SegmentMap(uint64_t a, uint64_t n) { return Add(EventKind::kSegmentMap, a, n); }
  Recording& SegmentUnmap(uint64_t a, uint64_t n) { return Add(EventKind::kSegmentUnmap, a, n); }
  Recording& Oom(uint64_t device_free, uint64_t n) { return Add(EventKind::kOom, device_free, n); }
  Recording& Snapshot(uint64_t active) { return Add(EventKind::kSnapshot, 0, active); }

  // Adds a segment of the final state, in ascending order; blocks are appended to it.
  Recording& Segment(uint64_t address, uint64_t size, bool is_large = true) {
    SegmentInfo segment;
    segment.address = Address(address);
    segment.total_size = Bytes(size);
    segment.stream = trace_->streams[stream_];
    segment.is_large = is_large;
    trace_->devices[0].has_final_state = true;
    trace_->devices[0].final_state.push_back(segment);
    return *this;
  }
  Recording& Block(uint64_t size, uint64_t requested, BlockState state = BlockState::kAllocated) {
    SegmentInfo& segment = trace_->devices[0].final_state.back();
    BlockInfo block;
    block.address = segment.blocks.empty()
                        ? segment.address
                        : segment.blocks.back().address + segment.blocks.back().size;
    block.size = Bytes(size);
    block.requested_size = Bytes(requested);
    block.state = state;
    segment.blocks.push_back(block);
    return *this;
  }
  Recording& FreeBlock(uint64_t size, uint64_t requested = 0) {
    return Block(size, requested, BlockState::kInactive);
  }
  // Makes the file list its segments, of which there are none.
  Recording& NoSegments() {
    trace_->devices[0].has_final_state = true;
    return *this;
  }

  Trace& trace() { return *trace_; }
  Schedule Build() const { return Schedule::Build(trace_, 0); }

 private:
  // It is shared, so that a chain of calls can end in a return: a copy is the same recording.
  std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  uint32_t stack_ = kNoStack;
  uint32_t stream_ = 0;
};

// Returns "alloc#0 free_requested#0": kinds and ids of a schedule's requests; record_stream and
// stream_done as "record_stream#0@3" with the stream.
inline std::string RequestsText(const Schedule& schedule) {
  return absl::StrJoin(schedule.requests(), " ", [](std::string* out, const Event& event) {
    const std::string_view name = EventKindName(event.kind);
    absl::StrAppend(out, absl::string_view(name.data(), name.size()));
    if (event.id != kNoAllocation) absl::StrAppend(out, "#", event.id);
    if (event.kind == EventKind::kRecordStream || event.kind == EventKind::kStreamDone) {
      absl::StrAppend(out, "@", event.stream);
    }
  });
}

inline std::vector<uint32_t> Begins(const Schedule& schedule) {
  return {schedule.recorded_begin().begin(), schedule.recorded_begin().end()};
}

}  // namespace memreplay::testing
