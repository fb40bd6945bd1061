// The last step of reading a snapshot, from the root value and the records to a Trace.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "trace/bytes/value.h"
#include "trace/formats/torch/snapshot_records.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;
using Type = ValueHeap::Type;
using Records = SnapshotRecords;

// The maximum number of a GPU; a larger one means a damaged file.
constexpr uint64_t kMaxDevice = 1023;

// What is kept of what ended a script, in bytes.
constexpr size_t kMaxEnded = 2000;

absl::Status At(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(place, ": ", what));
}
absl::Status At(std::string_view place, const absl::Status& status) {
  return At(place, ToStd(status.message()));
}

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

  absl::Status Run(Value root) {
    root = heap_.Resolve(root);
    heap_.DropMemo();
    if (!root.is(Kind::kObject)) {
      return heap_.Expected("a dict with 'segments' or a list of segments", root);
    }
    if (heap_.type(root) != Type::kDict) {
      Value list = root;
      RETURN_IF_ERROR(TakeSegments(&list, root));
    } else {
      Value* const traces = heap_.Find(root, "device_traces");
      Value* const segments = heap_.Find(root, "segments");
      if (traces == nullptr && segments == nullptr) {
        return absl::InvalidArgumentError(Place(
            root,
            "the dict has neither 'segments' nor 'device_traces', so it is not a memory snapshot"));
      }
      if (traces != nullptr) RETURN_IF_ERROR(TakeTraces(traces, root));
      if (segments != nullptr) RETURN_IF_ERROR(TakeSegments(segments, root));
      const auto take_text = [&](Value text, std::string_view what, std::string* to) {
        uint32_t index = 0;
        const absl::Status status = records_.TakeText(heap_.Resolve(text), &index);
        *to = std::string(trace_->strings[index]);
        return status.ok() ? status : At(Place(root, what), status);
      };
      const absl::Span<Value> items = heap_.items(root);
      for (size_t i = 0; i < items.size(); i += 2) {
        absl::Status status;
        switch (records_.KeyOf(items[i])) {
          case SnapshotKey("allocator_settings"): status = TakeSettings(&items[i + 1], root); break;
          case SnapshotKey("external_annotations"):
            status = TakeAnnotations(&items[i + 1], root);
            break;
          case SnapshotKey("torch_version"):
            status = take_text(items[i + 1], "'torch_version'", &trace_->torch_version);
            break;
          case SnapshotKey("memreplay_ended"):
            status = take_text(items[i + 1], "'memreplay_ended'", &trace_->ended);
            trace_->ended = trace_->ended.substr(0, kMaxEnded);
            break;
          case SnapshotKey("memreplay"): status = TakeNotes(&items[i + 1], root); break;
          case SnapshotKey("segments"):
          case SnapshotKey("device_traces"): break;
          default: records_.CountUnknownKey("the top level", items[i], heap_.position(root));
        }
        if (!status.ok()) return status;
      }
    }
    SortStreams();
    records_.ReportUnknownKeys();
    size_t events = 0;
    for (auto& [number, device] : devices_) {
      device.device = number;
      device.has_final_state = has_segments_;
      events += device.events.size();
      std::stable_sort(
          device.final_state.begin(), device.final_state.end(),
          [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
      trace_->devices.push_back(std::move(device));
    }
    if (events == 0) trace_->diagnostics.Add(DiagnosticKind::kNoTrace, 0);
    return absl::OkStatus();
  }

 private:
  // A normal file has at least 20 bytes per entry or block, which takes about 50 bytes of memory.
  static constexpr uint64_t kBytesPerElement = 12;
  static constexpr uint64_t kFreeElements = 100'000;

  // Returns a place for messages: "byte 12: a segment".

  std::string Place(Value holder, std::string_view what) const {
    return StrCat("byte ", heap_.position(holder), ": ", what);
  }

  absl::Status Spend(uint64_t elements) {
    if (elements > budget_) {
      return absl::InvalidArgumentError(
          "the lists hold more elements than a file of this size can contain: one container is "
          "listed very often");
    }
    budget_ -= elements;
    return absl::OkStatus();
  }

  // Checks that *slot is a list or tuple.

  absl::Status CheckList(Value* slot, Value holder, std::string_view what) {
    *slot = heap_.Resolve(*slot);
    if (!heap_.is_sequence(*slot)) return At(Place(holder, what), heap_.Expected("a list", *slot));
    return Spend(heap_.view(*slot).size());
  }

  // Returns the elements of *slot, which must be a list or tuple.

  absl::Status TakeList(Value* slot, Value holder, std::string_view what,
                        absl::Span<Value>* items) {
    RETURN_IF_ERROR(CheckList(slot, holder, what));
    *items = heap_.items(*slot);
    return absl::OkStatus();
  }

  absl::Status TakeSegments(Value* slot, Value holder) {
    has_segments_ = true;
    absl::Span<Value> segments;
    RETURN_IF_ERROR(TakeList(slot, holder, "segments", &segments));
    for (Value& segment : segments) RETURN_IF_ERROR(TakeSegment(&segment));
    return absl::OkStatus();
  }

  absl::Status TakeSegment(Value* slot) {
    const Value dict = *slot = heap_.Resolve(*slot);
    const std::string name = StrCat("segment ", segment_count_);
    if (!heap_.is(dict, Type::kDict)) return At(name, heap_.Expected("a dict", dict));
    SegmentInfo segment;
    uint64_t device = 0, ignored = 0;
    std::optional<uint64_t> allocated, active;
    uint16_t pool = 0;
    Value* blocks = nullptr;
    bool has_address = false, has_total = false;
    const absl::Span<Value> items = heap_.items(dict);
    for (size_t i = 0; i < items.size(); i += 2) {
      const Value key = items[i];
      Value* const value = &items[i + 1];
      absl::Status status;
      switch (records_.KeyOf(key)) {
        case SnapshotKey("device"): status = records_.TakeInteger(*value, &device); break;
        case SnapshotKey("address"):
          has_address = true;
          status = records_.TakeInteger(*value, &segment.address);
          break;
        case SnapshotKey("total_size"):
          has_total = true;
          status = records_.TakeInteger(*value, &segment.total_size);
          break;
        case SnapshotKey("allocated_size"):
          status = records_.TakeInteger(*value, &allocated.emplace());
          break;
        case SnapshotKey("active_size"):
          status = records_.TakeInteger(*value, &active.emplace());
          break;
        case SnapshotKey("requested_size"): status = records_.TakeInteger(*value, &ignored); break;
        case SnapshotKey("stream"): status = records_.TakeInteger(*value, &segment.stream); break;
        case SnapshotKey("segment_type"):
          segment.is_large = records_.KeyOf(*value) == SnapshotKey("large");
          if (!segment.is_large && records_.KeyOf(*value) != SnapshotKey("small")) {
            status = heap_.Expected("'large' or 'small'", *value);
          }
          break;
        case SnapshotKey("segment_pool_id"): status = records_.TakePool(value, &pool); break;
        case SnapshotKey("is_expandable"):
          trace_->layout.has_is_expandable = true;
          status = records_.TakeBool(*value, &segment.is_expandable);
          break;
        case SnapshotKey("frames"): status = records_.TakeStack(value, &segment.stack); break;
        case SnapshotKey("blocks"): blocks = value; break;
        default: records_.CountUnknownKey("a segment", key, heap_.position(dict));
      }
      if (!status.ok()) {
        return At(Place(dict, StrCat("'", heap_.strings()[key.index()], "' of ", name)), status);
      }
    }
    const std::string_view missing = !has_address        ? "address"
                                     : !has_total        ? "total_size"
                                     : blocks == nullptr ? "blocks"
                                                         : "";
    if (!missing.empty()) {
      return absl::InvalidArgumentError(Place(dict, StrCat(name, " has no '", missing, "'")));
    }
    const uint64_t address = segment.address.value(), total = segment.total_size.value();
    if (device > kMaxDevice || total > ~uint64_t{0} - address) {
      return At(Place(dict, name),
                StrCat("expected a device below 1024 and an end below 2^64, found device ", device,
                       ", address ", address, ", total_size ", total));
    }
    segment.pool_id = trace_->pools[pool];
    records_.NoteStream(segment.stream.value());
    RETURN_IF_ERROR(TakeBlocks(blocks, dict, &segment));
    CheckSums(segment, allocated, active);
    devices_[static_cast<int>(device)].final_state.push_back(std::move(segment));
    ++segment_count_;
    return absl::OkStatus();
  }

  absl::Status TakeBlocks(Value* slot, Value holder, SegmentInfo* segment) {
    absl::Span<Value> items;
    RETURN_IF_ERROR(TakeList(slot, holder, "'blocks' of a segment", &items));
    segment->blocks.reserve(items.size());
    Address next = segment->address;
    uint64_t without_address = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      const auto place = [&] {
        return Place(holder, StrCat("block ", i, " of segment ", segment_count_));
      };
      const Value item = heap_.Resolve(items[i]);
      if (!item.is_record(Records::kBlock)) {
        return At(place(), heap_.Expected("a dict with 'state'", item));
      }
      const Records::Block& block = records_.blocks()[item.index()];
      if ((block.fields & Records::kBad) != 0) {
        return At(place(), records_.ProblemOf(Records::kBlock, item.index()));
      }
      if ((block.fields & Records::kHasSize) == 0) {
        return absl::InvalidArgumentError(StrCat(place(), " has no 'size'"));
      }
      segment->blocks.push_back(block.info);
      BlockInfo& info = segment->blocks.back();
      if ((block.fields & Records::kHasAddress) == 0) {
        info.address = next;
        ++without_address;
      }
      if (info.size.value() > ~uint64_t{0} - info.address.value()) {
        return At(place(), "expected an end below 2^64");
      }
      next = info.address + info.size;
    }
    if (without_address > 0) {
      trace_->diagnostics.Add(DiagnosticKind::kNoBlockAddresses, segment_count_,
                              StrCat("segment ", segment_count_), without_address);
    }
    return absl::OkStatus();
  }

  absl::Status TakeTraces(Value* slot, Value holder) {
    trace_->layout.has_device_traces = true;
    absl::Span<Value> traces;
    RETURN_IF_ERROR(TakeList(slot, holder, "device_traces", &traces));
    std::vector<std::pair<int, ValueHeap::View>> filled;  // device, entries
    for (size_t i = 0; i < traces.size(); ++i) {
      RETURN_IF_ERROR(CheckList(&traces[i], holder, "a trace of device_traces"));
      const ValueHeap::View entries = heap_.view(traces[i]);
      if (entries.size() == 0) continue;
      if (i > kMaxDevice) return absl::InvalidArgumentError("more than 1024 devices");
      filled.emplace_back(static_cast<int>(i), entries);
    }
    for (const auto& [device, entries] : filled) {
      // Only a single trace may take the records; entries that several traces list are the events
      // of several devices.
      RETURN_IF_ERROR(TakeTrace(entries, device, filled.size() == 1));
    }
    return absl::OkStatus();
  }

  absl::Status TakeTrace(const ValueHeap::View& entries, int number, bool is_only) {
    std::vector<Event>& store = records_.events();
    std::vector<int64_t>& times = records_.times();
    // Usually the file has one trace whose entries are the records in order, and the store itself
    // becomes the trace. Otherwise the entries are copied.
    const bool in_order = is_only && entries.size() == store.size() &&
                          entries.is_range_from(Value::Record(Records::kEvent, 0));
    std::vector<Event> copied(in_order ? 0 : entries.size());
    std::vector<int64_t> copied_times(copied.size());
    std::vector<Event>& events = in_order ? store : copied;
    std::vector<int64_t>& event_times = in_order ? times : copied_times;
    bool has_times = false;
    size_t kept = 0;
    const auto note_time = [&](const Event& event) {
      has_times = has_times || event.scratch == 0 || (event.scratch & Records::kHasTime) != 0;
    };
    if (in_order) {  // as far as every entry is a complete record, each is in its place
      const std::vector<uint32_t>& partial = records_.partial_events();
      has_times = partial.size() < events.size();
      kept = events.size();
      for (const uint32_t i : partial) {
        if (!IsComplete(events[i])) kept = std::min<size_t>(kept, i);
      }
      for (const uint32_t i : partial) {
        if (i >= kept) continue;
        note_time(events[i]);
        events[i].scratch = 0;
      }
    }
    for (size_t i = kept; i < entries.size(); ++i) {
      const Value entry = heap_.Resolve(entries[i]);
      if (!entry.is_record(Records::kEvent)) {
        return At(StrCat("trace entry ", i, " of device ", number),
                  heap_.Expected("a dict with 'action'", entry));
      }
      Event event = store[entry.index()];
      note_time(event);
      if (!IsComplete(event)) {
        RETURN_IF_ERROR(CheckEvent(event, entry.index(), i, number));
        if ((event.scratch & Records::kUnknownAction) != 0) {
          trace_->diagnostics.Add(DiagnosticKind::kUnsupportedAction, kept,
                                  StrCat("action '", trace_->strings[event.id], "'"));
          continue;
        }
      }
      event.scratch = 0;
      events[kept] = event;
      event_times[kept] = times[entry.index()];
      ++kept;
    }
    DeviceTrace& device = devices_[number];
    device.events = std::move(events);
    device.events.kept().resize(kept);
    if (has_times) {
      device.time_us = std::move(event_times);
      device.time_us.resize(kept);
    }
    return absl::OkStatus();
  }

  absl::Status TakeSettings(Value* slot, Value holder) {
    const Value dict = *slot = heap_.Resolve(*slot);
    if (dict.is(Kind::kNone)) return absl::OkStatus();
    if (!heap_.is(dict, Type::kDict)) {
      return At(Place(holder, "allocator_settings"), heap_.Expected("a dict", dict));
    }
    trace_->layout.has_allocator_settings = true;
    RecordedSettings& settings = trace_->settings.emplace();
    const absl::Span<Value> items = heap_.items(dict);
    for (size_t i = 0; i < items.size(); i += 2) {
      const Value value = heap_.Resolve(items[i + 1]);
      absl::Status status;
      uint32_t text = 0;
      switch (records_.KeyOf(items[i])) {
        case SnapshotKey("PYTORCH_CUDA_ALLOC_CONF"):
          status = records_.TakeText(value, &text);
          settings.conf = std::string(trace_->strings[text]);
          break;
        case SnapshotKey("max_split_size"):
          status = records_.TakeSigned(value, &settings.max_split_size.emplace());
          break;
        case SnapshotKey("garbage_collection_threshold"):
          settings.garbage_collection_threshold = heap_.AsNumber(value);
          if (!settings.garbage_collection_threshold) status = heap_.Expected("a number", value);
          break;
        case SnapshotKey("expandable_segments"):
          status = records_.TakeBool(value, &settings.expandable_segments.emplace());
          break;
        case SnapshotKey("graph_capture_record_stream_reuse"):
          trace_->layout.has_graph_capture_record_stream_reuse = true;
          status = records_.TakeBool(value, &settings.graph_capture_record_stream_reuse.emplace());
          break;
        case SnapshotKey("roundup_power2_divisions"): status = TakeRoundup(value, &settings); break;
        case SnapshotKey("pinned_num_register_threads"):
        case SnapshotKey("release_lock_on_cudamalloc"):
        case SnapshotKey("pinned_use_cuda_host_register"): break;
        default: records_.CountUnknownKey("allocator_settings", items[i], heap_.position(dict));
      }
      if (!status.ok()) {
        return At(
            Place(dict, StrCat("'", heap_.strings()[items[i].index()], "' of allocator_settings")),
            status);
      }
    }
    return absl::OkStatus();
  }

  // Reads {"1": divisions, "2": ...}, whose keys are in MB.
  absl::Status TakeRoundup(Value dict, RecordedSettings* settings) {
    if (!heap_.is(dict, Type::kDict)) return heap_.Expected("a dict", dict);
    const absl::Span<Value> items = heap_.items(dict);
    RETURN_IF_ERROR(Spend(items.size()));
    for (size_t i = 0; i < items.size(); i += 2) {
      uint64_t megabytes = 0, divisions = 0;
      if (!items[i].is(Kind::kString) ||
          !absl::SimpleAtoi(ToAbsl(heap_.strings()[items[i].index()]), &megabytes)) {
        return heap_.Expected("megabytes as a key", items[i]);
      }
      RETURN_IF_ERROR(records_.TakeInteger(items[i + 1], &divisions));
      settings->roundup_power2_divisions.emplace_back(megabytes, divisions);
    }
    return absl::OkStatus();
  }

  absl::Status TakeAnnotations(Value* slot, Value holder) {
    trace_->layout.has_external_annotations = true;
    absl::Span<Value> items;
    RETURN_IF_ERROR(TakeList(slot, holder, "external_annotations", &items));
    for (size_t i = 0; i < items.size(); ++i) {
      const Value item = heap_.Resolve(items[i]);
      const auto place = [&] { return StrCat("external annotation ", i); };
      if (!item.is_record(Records::kAnnotation)) {
        return At(place(), heap_.Expected("a dict with 'stage'", item));
      }
      if ((records_.annotation_fields(item.index()) & Records::kBad) != 0) {
        return At(place(), records_.ProblemOf(Records::kAnnotation, item.index()));
      }
      trace_->annotations.push_back(records_.annotations()[item.index()]);
    }
    return absl::OkStatus();
  }

  // Reads {"version": 1, "addresses": "up", "kinds": [text ...], "names": [text ...], "devices":
  // [...]}; see docs/formats.md.
  absl::Status TakeNotes(Value* slot, Value holder) {
    const Value dict = *slot = heap_.Resolve(*slot);
    const auto expected = [&](std::string_view what, Value found) {
      return At(Place(holder, "'memreplay'"), heap_.Expected(what, found));
    };
    if (!heap_.is(dict, Type::kDict)) return expected("a dict", dict);
    Value* const version = heap_.Find(dict, "version");
    if (version == nullptr) return expected("a dict with 'version'", dict);
    uint64_t number = 0;
    if (!records_.TakeInteger(heap_.Resolve(*version), &number).ok()) {
      return expected("an integer as 'version'", *version);
    }
    if (number != 1) {  // a later memreplay wrote the notes, with unknown content
      records_.CountUnknownKey("'memreplay'", *heap_.Find(dict, "version"), heap_.position(dict));
      return absl::OkStatus();
    }
    if (Value* const addresses = heap_.Find(dict, "addresses"); addresses != nullptr) {
      const Value order = heap_.Resolve(*addresses);
      trace_->addresses_ascend = records_.KeyOf(order) == SnapshotKey("up");
      if (!*trace_->addresses_ascend && records_.KeyOf(order) != SnapshotKey("down")) {
        return expected("'up' or 'down' as 'addresses'", order);
      }
    }
    std::vector<uint32_t> texts[2];
    constexpr std::string_view kLists[] = {"kinds", "names"};
    for (size_t i = 0; i < 2; ++i) {
      Value* const list = heap_.Find(dict, kLists[i]);
      if (list == nullptr) return expected(StrCat("a dict with '", kLists[i], "'"), dict);
      absl::Span<Value> items;
      RETURN_IF_ERROR(TakeList(list, dict, kLists[i], &items));
      for (const Value item : items) {
        RETURN_IF_ERROR(records_.TakeText(heap_.Resolve(item), &texts[i].emplace_back()));
      }
    }
    std::vector<std::optional<NoteKind>> kinds;
    for (const uint32_t text : texts[0]) kinds.push_back(NoteKindFromName(trace_->strings[text]));
    Value* const list = heap_.Find(dict, "devices");
    if (list == nullptr) return expected("a dict with 'devices'", dict);
    absl::Span<Value> devices;
    RETURN_IF_ERROR(TakeList(list, dict, "'devices' of 'memreplay'", &devices));
    for (Value& device : devices) {
      RETURN_IF_ERROR(TakeNotesOfDevice(&device, dict, kinds, texts[1]));
    }
    return absl::OkStatus();
  }

  // Reads the notes of a device. A place counts the allocations and frees before it, from the start
  // of the process; `end` is the place of the end of the trace.
  absl::Status TakeNotesOfDevice(Value* slot, Value holder,
                                 absl::Span<const std::optional<NoteKind>> kinds,
                                 absl::Span<const uint32_t> names) {
    const Value dict = *slot = heap_.Resolve(*slot);
    if (!heap_.is(dict, Type::kDict)) {
      return At(Place(holder, "the notes of a device"), heap_.Expected("a dict", dict));
    }
    const auto integer = [&](std::string_view key, uint64_t* number) {
      Value* const value = heap_.Find(dict, key);
      const absl::Status status = value == nullptr
                                      ? absl::InvalidArgumentError("there is none")
                                      : records_.TakeInteger(heap_.Resolve(*value), number);
      return status.ok() ? status : At(Place(dict, StrCat("'", key, "' of the notes")), status);
    };
    uint64_t device = 0, end = 0;
    RETURN_IF_ERROR(integer("device", &device));
    RETURN_IF_ERROR(integer("end", &end));
    enum { kKinds, kPlaces, kNames, kAddresses, kColumns };
    constexpr std::string_view kKeys[kColumns] = {"kind", "place", "name", "address"};
    absl::Span<const Value> columns[kColumns];
    for (size_t i = 0; i < kColumns; ++i) {
      Value* const list = heap_.Find(dict, kKeys[i]);
      const auto place = [&] { return Place(dict, StrCat("'", kKeys[i], "' of the notes")); };
      if (list == nullptr) return At(place(), "there is none");
      *list = heap_.Resolve(*list);
      if (!heap_.is(*list, Type::kList)) return At(place(), heap_.Expected("a list", *list));
      columns[i] = heap_.items(*list);
      if (columns[i].size() != columns[0].size()) {
        return At(place(),
                  StrCat("expected ", columns[0].size(), " numbers, found ", columns[i].size()));
      }
    }
    RETURN_IF_ERROR(Spend(columns[0].size()));
    const auto found = devices_.find(static_cast<int>(std::min<uint64_t>(device, kMaxDevice + 1)));
    if (found == devices_.end()) return absl::OkStatus();  // nothing was recorded for this device
    DeviceTrace& trace = found->second;
    const auto counts = [](const Event& event) {
      return event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
    };
    const auto counted = static_cast<uint64_t>(absl::c_count_if(trace.events, counts));
    const uint64_t begin = end - std::min(end, counted);  // place of the start of the trace
    bool fits = end >= counted;
    std::vector<MemoryNote> notes;
    uint64_t event = 0, passed = begin, last = 0;
    for (size_t i = 0; fits && i < columns[0].size(); ++i) {
      uint64_t numbers[kColumns];
      for (size_t c = 0; c < kColumns; ++c) {
        const absl::Status status = records_.TakeInteger(columns[c][i], &numbers[c]);
        if (!status.ok()) return At(Place(dict, StrCat("'", kKeys[c], "' of note ", i)), status);
      }
      fits = numbers[kPlaces] >= last && numbers[kPlaces] <= end;
      last = numbers[kPlaces];
      for (; fits && passed < last; ++event) passed += counts(trace.events[event]) ? 1 : 0;
      if (numbers[kKinds] >= kinds.size() || !kinds[numbers[kKinds]]) continue;
      if (*kinds[numbers[kKinds]] ==
          NoteKind::kOom) {  // it counts nothing, so `event` is before it
        uint64_t next = event;
        while (next < trace.events.size() && !counts(trace.events[next]) &&
               trace.events[next].kind != EventKind::kOom) {
          ++next;
        }
        if (next < trace.events.size() && !counts(trace.events[next])) event = next + 1;
      }
      if (numbers[kNames] >= names.size()) {
        return At(Place(dict, StrCat("note ", i)),
                  StrCat("expected a name below ", names.size(), ", found ", numbers[kNames]));
      }
      // An address may have another meaning in the trace than before it.
      if (numbers[kAddresses] != 0 && last < begin && !IsOfRun(*kinds[numbers[kKinds]])) continue;
      notes.push_back(
          {*kinds[numbers[kKinds]], names[numbers[kNames]], event, Address(numbers[kAddresses])});
    }
    if (fits) {
      trace.notes = std::move(notes);
    } else {
      trace_->diagnostics.Add(DiagnosticKind::kMisplacedNotes, 0, StrCat("device ", device));
    }
    return absl::OkStatus();
  }

  // Returns true if CheckEvent() would find nothing; a fast check that suffices for nearly all
  // events.
  static bool IsComplete(const Event& event) {
    constexpr uint8_t kNeeded = Records::kHasAddress | Records::kHasSize | Records::kHasStream;
    constexpr uint8_t kOdd = Records::kUnknownAction | Records::kBad;
    return event.scratch == 0 || (event.scratch & (kNeeded | kOdd)) == kNeeded;
  }

  absl::Status CheckEvent(const Event& event, uint32_t record, size_t entry, int device) const {
    const uint8_t fields = event.scratch;
    const auto place = [&] { return StrCat("trace entry ", entry, " of device ", device); };
    if ((fields & Records::kBad) != 0)
      return At(place(), records_.ProblemOf(Records::kEvent, record));
    if ((fields & Records::kUnknownAction) != 0) return absl::OkStatus();
    const uint8_t address = event.kind == EventKind::kOom
                                ? Records::kHasDeviceFree | Records::kHasAddress
                                : Records::kHasAddress;
    std::string_view missing;
    if ((fields & address) == 0) missing = event.kind == EventKind::kOom ? "device_free" : "addr";
    if ((fields & Records::kHasSize) == 0) missing = "size";
    if ((fields & Records::kHasStream) == 0) missing = "stream";
    if (missing.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        StrCat(place(), " (", EventKindName(event.kind), ") has no '", missing, "'"));
  }

  void CheckSums(const SegmentInfo& segment, std::optional<uint64_t> allocated,
                 std::optional<uint64_t> active) {
    Bytes total, allocated_sum, active_sum;
    Address next = segment.address;
    bool adjacent = true;
    for (const BlockInfo& block : segment.blocks) {
      adjacent = adjacent && block.address == next;
      next = block.address + block.size;
      total += block.size;
      if (block.state != BlockState::kInactive) active_sum += block.size;
      if (block.state == BlockState::kAllocated) allocated_sum += block.size;
    }
    std::string what;
    if (total != segment.total_size) {
      what = StrCat("blocks add up to ", total.value(), ", total_size is ",
                    segment.total_size.value());
    } else if (!adjacent) {
      what = "blocks leave a gap or overlap";
    } else if (allocated.has_value() && *allocated != allocated_sum.value()) {
      what = StrCat("allocated blocks add up to ", allocated_sum.value(), ", allocated_size is ",
                    *allocated);
    } else if (active.has_value() && *active != active_sum.value()) {
      what = StrCat("active blocks add up to ", active_sum.value(), ", active_size is ", *active);
    }
    if (what.empty()) return;
    trace_->diagnostics.Add(DiagnosticKind::kSegmentSumMismatch, segment_count_,
                            StrCat("segment ", segment_count_, " at 0x",
                                   absl::Hex(segment.address.value()), ": ", what));
  }

  // Sorts the streams, which were numbered by first use; a Trace has them ascending.
  void SortStreams() {
    for (const uint64_t handle : records_.streams()) trace_->streams.emplace_back(handle);
    const std::vector<uint32_t> rank = SortedStreams(&trace_->streams);
    if (absl::c_is_sorted(rank)) return;  // the numbers do not change
    for (auto& [number, device] : devices_) {
      for (Event& event : device.events) event.stream = rank[event.stream];
    }
  }

  ValueHeap& heap_;
  SnapshotRecords& records_;
  Trace* trace_;
  uint64_t budget_;
  std::map<int, DeviceTrace> devices_;
  uint64_t segment_count_ = 0;
  bool has_segments_ = false;
};

}  // namespace

absl::Status AssembleSnapshot(Value root, uint64_t input_bytes, ValueHeap& heap,
                              SnapshotRecords& records, Trace* trace) {
  return SnapshotAssembly(heap, records, trace, input_bytes).Run(root);
}

}  // namespace memreplay
