// Puts a Trace together from records in file order: what the readers of our own
// formats share. Not for files in which order means something else.
#ifndef MEMREPLAY_TRACE_VALUE_TRACE_BUILDER_H_
#define MEMREPLAY_TRACE_VALUE_TRACE_BUILDER_H_

#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "trace/value/trace.h"

namespace memreplay {

// Whether the stream of an event means something. If so it is always written, and
// absent it is handle 0; if not it is written only where it is not number 0.
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

// Collects what a reader finds, and makes a Trace of it.
class TraceBuilder {
 public:
  // What Event::stream holds, until Finish, of an event that names no stream.
  static constexpr uint32_t kNoStream = 0xffffffff;
  static constexpr size_t kMaxStreams = size_t{1} << 24;
  static constexpr size_t kMaxPools = size_t{1} << 16;

  explicit TraceBuilder(std::string format) { trace_.format = std::move(format); }

  Trace& trace() { return trace_; }
  // Creates the device if it is new.
  DeviceTrace& Device(int device) { return Find(device).trace; }

  // A number for Event::stream that holds until Finish. kNoStream if there are
  // kMaxStreams already.
  uint32_t StreamNumber(StreamHandle handle);
  // Index in the pool table; nothing if the table is full.
  std::optional<uint16_t> PoolIndex(PoolId pool);

  // Appends to the device's events. Times: see SetTime.
  void Add(int device, const Event& event);
  // As Add; the event happened at `time_us`. If any event of a device has a
  // time, one without is a microsecond after the one before it.
  void AddAt(int device, const Event& event, int64_t time_us);
  // Time of the device's last event; 0 if it has none.
  int64_t clock(int device) { return Find(device).clock; }

  // Streams sorted by handle, devices by number, events renumbered.
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

// Whether the indexes, orders and lengths of a trace are as trace.h promises;
// FailedPrecondition with what is wrong and where. O(events). Writers ask this
// first, so that none follows a wrong index.
absl::Status CheckTrace(const Trace& trace);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_VALUE_TRACE_BUILDER_H_
