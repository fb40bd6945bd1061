// The last step of reading a snapshot, from the root value and the records to a Trace. Part of
// torch_snapshot_reader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "trace/bytes/value.h"
#include "trace/formats/torch/snapshot_records.h"
#include "trace/value/trace.h"

namespace memreplay {

// Builds a Trace from the records of a snapshot.
class SnapshotAssembly {
 public:
  // Consumes `records` and its trace. `input_bytes` bounds the work: a file that lists one shared
  // container many times cannot become larger than a normal file of its size.
  SnapshotAssembly(ValueHeap& heap, SnapshotRecords& records, Trace* trace, uint64_t input_bytes)
      : heap_(heap),
        records_(records),
        trace_(trace),
        budget_(input_bytes / kBytesPerElement + kFreeElements) {}

  absl::Status Run(Value root);

 private:
  // A normal file has at least 20 bytes per entry or block, which takes about 50 bytes of memory.
  static constexpr uint64_t kBytesPerElement = 12;
  static constexpr uint64_t kFreeElements = 100'000;

  // Returns a place for messages: "byte 12: a segment".
  std::string Place(Value holder, std::string_view what) const;
  absl::Status Spend(uint64_t elements);
  // Checks that *slot is a list or tuple.
  absl::Status CheckList(Value* slot, Value holder, std::string_view what);
  // Returns the elements of *slot, which must be a list or tuple.
  absl::Status TakeList(Value* slot, Value holder, std::string_view what, absl::Span<Value>* items);

  absl::Status TakeSegments(Value* slot, Value holder);
  absl::Status TakeSegment(Value* slot);
  absl::Status TakeBlocks(Value* slot, Value holder, SegmentInfo* segment);
  absl::Status TakeTraces(Value* slot, Value holder);
  absl::Status TakeTrace(const ValueHeap::View& entries, int device, bool is_only);
  absl::Status TakeSettings(Value* slot, Value holder);
  absl::Status TakeRoundup(Value dict, RecordedSettings* settings);
  absl::Status TakeAnnotations(Value* slot, Value holder);
  absl::Status TakeNotes(Value* slot, Value holder);
  absl::Status TakeNotesOfDevice(Value* slot, Value holder,
                                 absl::Span<const std::optional<NoteKind>> kinds,
                                 absl::Span<const uint32_t> names);
  // Returns true if CheckEvent() would find nothing; a fast check that suffices for nearly all
  // events.
  static bool IsComplete(const Event& event);
  absl::Status CheckEvent(const Event& event, uint32_t record, size_t entry, int device) const;
  void CheckSums(const SegmentInfo& segment, std::optional<uint64_t> allocated,
                 std::optional<uint64_t> active);
  void SortStreams();

  ValueHeap& heap_;
  SnapshotRecords& records_;
  Trace* trace_;
  uint64_t budget_;
  std::map<int, DeviceTrace> devices_;
  uint64_t segment_count_ = 0;
  bool has_segments_ = false;
};

}  // namespace memreplay
