// Builds a Trace from records in file order, for the readers of memreplay's own formats. It does
// not suit files in which order has another meaning.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "trace/value/trace.h"

namespace memreplay {

// Returns whether the stream of an event has a meaning. If so, it is always written and defaults to
// handle 0; otherwise it is written only if it is not number 0.
inline bool NamesStream(const Event& event) {
  switch (event.kind) {
    case EventKind::kAlloc:
    case EventKind::kFree:
    case EventKind::kRecordStream:
    case EventKind::kStreamDone: return true;
    case EventKind::kMark:
      return event.is_mark(MarkKind::kEventRecord) || event.is_mark(MarkKind::kStreamWait);
    default: return !IsRequest(event.kind);
  }
}

// Collects records and builds a Trace from them.
class TraceBuilder {
 public:
  // Event::stream of an event that names no stream, until Finish().
  static constexpr uint32_t kNoStream = 0xffffffff;
  static constexpr size_t kMaxStreams = size_t{1} << 24;
  static constexpr size_t kMaxPools = size_t{1} << 16;

  explicit TraceBuilder(std::string format) { trace_.format = std::move(format); }

  Trace& trace() { return trace_; }
  // Returns the device's trace and creates it if it is new.
  DeviceTrace& Device(int device) { return Find(device).trace; }

  // Returns a number for Event::stream that is valid until Finish(); kNoStream if there are
  // kMaxStreams already.
  uint32_t StreamNumber(StreamHandle handle);
  // Returns the index in the pool table; nullopt if the table is full.
  std::optional<uint16_t> PoolIndex(PoolId pool);

  // Appends to the device's events. See AddAt() about times.
  void Add(int device, const Event& event);
  // Appends an event that happened at `time_us`. If any event of a device has a time, one without
  // is placed a microsecond after its predecessor.
  void AddAt(int device, const Event& event, int64_t time_us);
  // Returns the time of the device's last event; 0 if there is none.
  int64_t clock(int device) { return Find(device).clock; }

  // Sorts streams by handle and devices by number, and renumbers the events.
  Trace Finish() &&;

 private:
  struct Entry {
    DeviceTrace trace;
    bool has_times = false;
    int64_t clock = 0;
  };
  Entry& Find(int device);

  Trace trace_;
  std::map<int, Entry> devices_;
  Entry* last_entry_ = nullptr;
  int last_device_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> stream_numbers_;
  uint64_t last_handle_ = 0;
  uint32_t last_stream_ = kNoStream;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint16_t> pool_indexes_ = {{{0, 0}, 0}};
};

// Sorts the streams, and returns the new number of each by its old one.
std::vector<uint32_t> SortedStreams(std::vector<StreamHandle>* streams);

// Checks that the indexes, orders and lengths of a trace are as trace.h promises. Error:
// FailedPrecondition with the defect and its place. O(events). Writers call this first, so that
// none follows an invalid index.
absl::Status CheckTrace(const Trace& trace);

}  // namespace memreplay
