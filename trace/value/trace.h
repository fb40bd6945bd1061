// The content of one file, read but not yet validated: the common output of every reader. Schedule
// (schedule.h) turns one device of it into something that can be replayed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/value/diagnostics.h"
#include "trace/value/event.h"
#include "trace/value/event_list.h"
#include "trace/value/memory_state.h"
#include "trace/value/tables.h"
#include "trace/value/units.h"

namespace memreplay {

// The meaning of a note: what Python knew about a script's memory during a recording. `memreplay
// record` and memreplay.recording() write these notes (python/memreplay/_notes.py).
enum class NoteKind : uint8_t {
  // The start of a span, which ends at the next kEnd that does not belong to a later start.
  kForward,     // a model's forward() with gradients; name = its class
  kEvaluation,  // the same without gradients
  kModule,      // forward() of an inner module; name = its path, "transformer.h.3.attn"
  kBackward,    // autograd's engine
  kOptimizer,   // Optimizer.step(); name = its class
  kEnd,
  // The role of the storage at `address`, a live allocation.
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput,   // an argument of a model
  kOutput,  // a result of a model
  kLoss,    // a number that a model returned or that backward started from
  // The script set the allocator's settings; name = the text. The first note of a device has the
  // text that held before any change.
  kSettings,
  // The script limited PyTorch to a share of the GPU; name = the share, address.value() = the GPU's
  // memory in bytes.
  kFraction,
  // The script made a MemPool with options; name = "no_split", "use_on_oom" or both with a comma,
  // address.value() = the second number of its id, whose first is 0.
  kPool,
  // Who holds memory; name = a proto::Holding as JSON.
  kHolding,
  // Memory ran out before here: an exception ends the spans that were open then.
  kOom,
};
// The options in the name of a kPool.
inline constexpr std::string_view kNoSplitOption = "no_split";
inline constexpr std::string_view kUseOnOomOption = "use_on_oom";
inline constexpr size_t kNoteKinds = static_cast<size_t>(NoteKind::kOom) + 1;

// The names in files, by kind.
inline constexpr std::array<std::string_view, kNoteKinds> kNoteNames = {
    "forward",   "evaluation", "module",          "backward",        "optimizer", "end",
    "parameter", "buffer",     "gradient",        "optimizer_state", "input",     "output",
    "loss",      "settings",   "memory_fraction", "mem_pool",        "holding",   "oom"};

// Returns whether the note is about the allocator or the whole run, not about what the script does
// at this place.
constexpr bool IsOfRun(NoteKind kind) { return kind >= NoteKind::kSettings; }

inline std::optional<NoteKind> NoteKindFromName(std::string_view name) {
  for (size_t i = 0; i < kNoteKinds; ++i) {
    if (kNoteNames[i] == name) return static_cast<NoteKind>(i);
  }
  return std::nullopt;
}

// A note that Python made about the script.
struct MemoryNote {
  NoteKind kind = NoteKind::kEnd;
  uint32_t name = 0;   // StringTable
  uint64_t event = 0;  // the note precedes this position in DeviceTrace::events
  Address address;     // of a storage; null for spans and settings
  friend bool operator==(const MemoryNote&, const MemoryNote&) = default;
};

// The settings that a snapshot records (allocator_settings), as of when it was taken, or that the
// header of a schedule sets.
struct RecordedSettings {
  std::string conf;                       // PYTORCH_CUDA_ALLOC_CONF
  std::optional<int64_t> max_split_size;  // bytes; -1 = unlimited
  std::optional<double> garbage_collection_threshold;
  std::optional<bool> expandable_segments;
  std::optional<bool> graph_capture_record_stream_reuse;
  std::vector<std::pair<uint64_t, uint64_t>> roundup_power2_divisions;  // (MB, divisions)
};

// How recorded work on other streams completes in a schedule.
enum class Completion : uint8_t {
  kAtOnce,    // when the allocator next polls
  kExplicit,  // only after a kStreamDone event
};

// Facts about the file that help to identify the PyTorch that wrote it.
struct LayoutFacts {
  bool has_device_traces = false;
  bool has_allocator_settings = false;
  bool has_external_annotations = false;
  bool has_time_us = false;
  bool has_compile_context = false;
  bool has_user_metadata = false;
  bool has_event_pool_id = false;
  bool has_block_history = false;    // 2.0
  bool has_block_addresses = false;  // 2.1 and later
  bool has_is_expandable = false;
  bool has_graph_capture_record_stream_reuse = false;  // in allocator_settings
  int pickle_protocol = 0;                             // 0: not a pickle

  // Sets the fact with this name in kLayoutFields; returns false if there is none.
  bool Set(std::string_view name);
};

// A fact about the layout of a snapshot, by the name that formats store.
struct LayoutField {
  std::string_view name;
  bool LayoutFacts::*field;
};
inline constexpr LayoutField kLayoutFields[] = {
    {"device_traces", &LayoutFacts::has_device_traces},
    {"allocator_settings", &LayoutFacts::has_allocator_settings},
    {"external_annotations", &LayoutFacts::has_external_annotations},
    {"time_us", &LayoutFacts::has_time_us},
    {"compile_context", &LayoutFacts::has_compile_context},
    {"user_metadata", &LayoutFacts::has_user_metadata},
    {"event_pool_id", &LayoutFacts::has_event_pool_id},
    {"block_history", &LayoutFacts::has_block_history},
    {"block_addresses", &LayoutFacts::has_block_addresses},
    {"is_expandable", &LayoutFacts::has_is_expandable},
    {"graph_capture_record_stream_reuse", &LayoutFacts::has_graph_capture_record_stream_reuse},
};

inline bool LayoutFacts::Set(std::string_view name) {
  for (const LayoutField& field : kLayoutFields) {
    if (field.name == name) return this->*field.field = true;
  }
  return false;
}

// A named range or point that the script annotated (external_annotations).
struct Annotation {
  uint32_t name = 0;   // StringTable
  uint32_t stage = 0;  // StringTable: "START", "END" or other
  int device = 0;
  int64_t time_us = 0;
};

// The content of a file for one device.
struct DeviceTrace {
  int device = 0;
  EventList events;               // requests and effects in recorded order
  std::vector<int64_t> time_us;   // per event; empty if the file has no times
  std::vector<MemoryNote> notes;  // ascending by event; empty if Python made none
  bool has_final_state = false;
  MemoryState final_state;  // when the snapshot was taken, after the last event
};

// The content of a file.
struct Trace {
  std::string format;  // "torch_snapshot_pickle", "text", "protobuf", "flat_jsonl" ...
  // True for schedules (and memreplay's own formats written from them): Event::address of requests
  // holds a handle (an arbitrary number, unique while live) and no effects are recorded.
  bool is_program = false;
  std::vector<DeviceTrace> devices;        // ascending by device; only those in the file
  std::vector<StreamHandle> streams;       // Event::stream -> handle, ascending
  std::vector<PoolId> pools = {PoolId{}};  // Event::pool -> id; index 0 is the default pool
  StringTable strings;
  StackTable stacks;
  std::optional<RecordedSettings> settings;
  std::string torch_version;  // "2.6.0+cu124", if known, as in files of `memreplay record`
  // Whether the device's addresses ascended, if known, as in files of `memreplay record --addresses
  // up`.
  std::optional<bool> addresses_ascend;
  std::string ended;  // what ended the script before its own end, if known: "ValueError: too large"
  LayoutFacts layout;
  std::vector<Annotation> annotations;
  Diagnostics diagnostics;

  // Settings in the header of a schedule; absent in snapshots.
  std::optional<Bytes> total_memory;
  std::optional<double> memory_fraction;
  Completion completion = Completion::kAtOnce;
  // Members of the header on the origin of the schedule ("config", "seed", "meta"), as one JSON
  // object; empty if none.
  std::string program_header;
};

// Returns the kind of event that ends the use of a block: completions, unless the file has only
// frees. A block that is pending at the end shows that frees can be late, even if none completes in
// the recording. O(events).
inline EventKind EndOfLife(const Trace& trace, const DeviceTrace& device) {
  if (trace.is_program) return EventKind::kFree;
  for (const SegmentInfo& segment : device.final_state) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kPendingFree) return EventKind::kFreeCompleted;
    }
  }
  const bool completes =
      std::any_of(device.events.begin(), device.events.end(),
                  [](const Event& e) { return e.kind == EventKind::kFreeCompleted; });
  return completes ? EventKind::kFreeCompleted : EventKind::kFree;
}

}  // namespace memreplay
