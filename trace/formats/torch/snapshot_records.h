// Turns the dicts of a PyTorch memory snapshot into compact records while the file is read: trace
// entries, blocks, annotations, stacks. Part of torch_snapshot_reader.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "trace/bytes/value.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// Every text with a meaning in a PyTorch memory snapshot: keys, actions and states. Each is
// numbered by its index here, and these are the first texts of the heap's StringTable, so that a
// reader compares integers.
inline constexpr std::string_view kSnapshotTexts[] = {
    "",
    // Trace entries.
    "action", "addr", "device_free", "size", "stream", "time_us", "compile_context",
    "user_metadata", "pool_id", "frames", "category",
    // Blocks.
    "address", "requested_size", "state", "history", "real_size",
    // Frames.
    "name", "filename", "line", "fx_node_op", "fx_node_name", "fx_node_target", "fx_original_trace",
    // Annotations.
    "stage", "device",
    // Segments.
    "total_size", "allocated_size", "active_size", "segment_type", "segment_pool_id",
    "is_expandable", "blocks",
    // Top level; the last three are added by `memreplay record`.
    "segments", "device_traces", "allocator_settings", "external_annotations", "torch_version",
    "memreplay_ended", "memreplay",
    // Settings.
    "PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold",
    "expandable_segments", "pinned_num_register_threads", "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register", "graph_capture_record_stream_reuse",
    "roundup_power2_divisions",
    // Actions, in the order of kActionKinds (snapshot_records.cc).
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "oom", "snapshot",
    // States and segment types.
    "active_allocated", "active_pending_free", "active_awaiting_free", "inactive", "large", "small",
    "up", "down"};

// Returns the number of one of them, for `case SnapshotKey("action"):`.
consteval uint32_t SnapshotKey(std::string_view text) {
  uint32_t key = 0;
  while (kSnapshotTexts[key] != text) ++key;  // does not compile if it is none of them
  return key;
}

// The records read so far. A dict that is filled piece by piece stays open: a record is found by
// its index, and later pairs go into the same record, so the order of keys and the number of
// SETITEMS do not matter.
class SnapshotRecords : public DictReducer {
 public:
  enum Tag : uint8_t { kEvent, kBlock, kAnnotation, kStack, kFrame, kPool };

  // The fields that a record has.
  enum Field : uint8_t {
    kHasAddress = 1,
    kHasSize = 2,
    kHasStream = 4,       // events
    kHasRequested = 4,    // blocks
    kHasTime = 8,         // events, annotations
    kHasKind = 16,        // the action, state or stage
    kHasDeviceFree = 32,  // events: `address` came as device_free
    kUnknownAction = 64,  // events: Event::id is the action's name in trace.strings
    kBad = 128,           // a field has no usable value, see ProblemOf()
    kWholeEvent = kHasKind | kHasAddress | kHasSize | kHasStream | kHasTime,
  };
  struct Block {
    BlockInfo info;
    uint8_t fields = 0;
  };

  // Adds strings, stacks, pools, layout facts and diagnostics to `*trace`. Interns its keys into
  // the heap, which must be new.
  SnapshotRecords(ValueHeap& heap, Trace* trace);

  absl::Status AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                        uint64_t position) override;
  // Rows are trace entries of one PyTorch release, written by Python's pickler.
  bool BeginRows(absl::Span<const Value> keys) override;
  bool AddRow(absl::Span<const Value> row, Value* record) override;
  std::unique_ptr<RowTaker> NewRowTaker() override;

  void Expect(uint64_t read, uint64_t all) override {
    ReserveFor(events_, read, all);
    ReserveFor(times_, read, all);
  }
  uint64_t MemoryUse() const override {
    return events_.size() * kEventBytes + partial_events_.capacity() * sizeof(uint32_t) +
           blocks_.capacity() * sizeof(Block) + annotations_.capacity() * sizeof(Annotation) +
           streams_.size() * kStreamBytes + stack_memory_;
  }

  // Reserves memory for about `count` events; a hint.
  void Reserve(size_t count) {
    events_.reserve(count);
    times_.reserve(count);
  }

  // Event::scratch holds the fields, or 0 for kWholeEvent; Event::stream an index into streams().
  std::vector<Event>& events() { return events_; }
  // Returns the indices of the events whose scratch is not 0, in any order: few, unless no entry of
  // the file has a time.
  const std::vector<uint32_t>& partial_events() const { return partial_events_; }
  std::vector<int64_t>& times() { return times_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<Annotation>& annotations() const { return annotations_; }
  uint8_t annotation_fields(uint32_t index) const { return annotation_fields_[index]; }
  // Returns the streams in order of appearance.
  const std::vector<uint64_t>& streams() const { return streams_; }

  // Read a value from a holder's slot and store the reduced form there. Return an error if it is
  // something else.
  absl::Status TakeStack(Value* slot, uint32_t* stack);            // list of frames, or None
  absl::Status TakePool(Value* slot, uint16_t* pool);              // a pair of integers
  absl::Status TakeInteger(Value value, uint64_t* integer) const;  // not negative
  template <typename T>
  absl::Status TakeInteger(Value value, T* integer) const {  // Bytes and others of units.h
    uint64_t number = 0;
    const absl::Status status = TakeInteger(value, &number);
    *integer = T(number);
    return status;
  }
  absl::Status TakeSigned(Value value, int64_t* integer) const;
  absl::Status TakeBool(Value value, bool* flag) const;
  absl::Status TakeText(Value value, uint32_t* text);  // index into trace.strings

  // Returns why a record is bad, as a sentence with the byte offset.
  std::string ProblemOf(Tag tag, uint32_t index) const;

  // Notes that a segment is on this stream.
  void NoteStream(uint64_t handle) { StreamIndex(handle); }

  // Returns the number of a known text; that of "" for anything else.
  uint32_t KeyOf(Value key) const {
    return key.is(Value::Kind::kString) && key.index() < std::size(kSnapshotTexts) ? key.index()
                                                                                   : 0;
  }

  // Counts a key that is unknown in `where` ("a trace entry").
  void CountUnknownKey(std::string_view where, Value key, uint64_t position);
  // Moves the counts into the trace's diagnostics.
  void ReportUnknownKeys();

 private:
  // Return NotFound for a key that such a record does not have.
  absl::Status SetEventField(Event& event, int64_t& time, uint32_t key, Value* value);
  absl::Status SetBlockField(Block& block, uint32_t key, Value* value);
  absl::Status SetAnnotationField(Annotation& annotation, uint8_t& fields, uint32_t key,
                                  Value value);
  // The position in a row of each field's value; -1: absent.
  struct RowFields {
    ptrdiff_t action = -1, address = -1, size = -1, stream = -1, time = -1, stack = -1, pool = -1;
  };
  class Taker;

  static bool MakeEvent(const RowFields& fields, absl::Span<const Value> row, Event* event,
                        int64_t* time, uint64_t* stream);

  absl::Status SetFields(Value record, absl::Span<Value> pairs, uint64_t position);
  absl::Status TakeFrame(Value* slot, uint32_t* frame);
  absl::Status TakeHistory(Value* slot, uint32_t* stack);
  uint32_t StreamIndex(uint64_t handle) {
    if (streams_.size() == 1 && streams_[0] == handle) return 0;
    return AddStream(handle);
  }
  uint32_t AddStream(uint64_t handle);  // unless it is known

  static constexpr uint64_t kEventBytes = sizeof(Event) + sizeof(int64_t);
  static constexpr uint64_t kStreamBytes = 40;  // including its index

  struct UnknownKey {
    uint64_t count = 0;
    uint64_t first = 0;
  };

  ValueHeap& heap_;
  Trace* trace_;
  uint64_t stack_memory_ = 0;
  std::vector<Event> events_;
  std::vector<int64_t> times_;
  std::vector<uint32_t> partial_events_;
  std::vector<Block> blocks_;
  std::vector<Annotation> annotations_;
  std::vector<uint8_t> annotation_fields_;
  std::vector<uint64_t> streams_;
  absl::flat_hash_map<uint64_t, uint32_t> stream_index_;
  std::map<PoolId, uint16_t> pool_index_;
  std::vector<uint32_t> text_of_string_;  // trace string by heap string
  std::vector<uint32_t> frames_;          // scratch of TakeStack
  std::map<std::pair<std::string, std::string>, UnknownKey> unknown_keys_;
  std::vector<std::pair<Value, std::string>> problems_;  // the first few
  RowFields row_;
};

// Moves the records of a snapshot, whose value is `root`, and what they added to `*trace` there,
// into the Trace that they are (snapshot_assembly.cc). `input_bytes` bounds the work: a file that
// lists one shared container many times cannot become larger than a normal file of its size.
absl::Status AssembleSnapshot(Value root, uint64_t input_bytes, ValueHeap& heap,
                              SnapshotRecords& records, Trace* trace);

}  // namespace memreplay
