#include <string>
#include <string_view>
#include <vector>

#include "trace/bytes/json_scanner.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/formats/flat/flat_records.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

// Whether a schedule's record has this member even where its value is the default; null: an effect.
bool Requires(const FlatRecord* record, char what) {
  return record != nullptr && record->required.find(what) != std::string_view::npos;
}

// Returns the natural record of an event; null if only "fx" can represent it.
const FlatRecord* RecordOf(const Event& event) {
  if (!IsRequest(event.kind)) return nullptr;
  for (const FlatRecord& record : kFlatRecords) {
    if (record.kind != event.kind) continue;
    if (event.kind == EventKind::kPoolCreate) {
      return event.pool_flags() <= (kPoolUseOnOom | kPoolNoSplit) ? &record : nullptr;
    }
    if (event.kind != EventKind::kMark) return &record;
    if (event.is_mark(record.mark)) {
      return record.text.empty() && event.text_or_stack != kNoText ? nullptr : &record;
    }
  }
  return nullptr;
}

class FlatJsonlWriter {
 public:
  FlatJsonlWriter(const Trace& trace, ByteSink& sink)
      : trace_(trace), output_(sink), out_(output_.text()) {
    // A free need not name the stream in a schedule whose only stream is 0.
    names_free_stream_ =
        !trace.is_program || trace.streams.size() != 1 || trace.streams[0].value() != 0;
    names_device_ =
        trace.devices.size() > 1 || (trace.devices.size() == 1 && trace.devices[0].device != 0);
    frame_numbers_.resize(trace.stacks.frame_count());
    stack_numbers_.resize(trace.stacks.size());
    labels_.resize(trace.stacks.size());
  }

  absl::Status Write() {
    RETURN_IF_ERROR(CheckTrace(trace_));
    RETURN_IF_ERROR(Header());
    for (const DeviceTrace& device : trace_.devices) {
      if (device.has_final_state || device.events.empty()) {
        StrAppend(&out_, "{\"k\":\"dev\"");
        DeviceMember(device.device);
        StrAppend(&out_, device.has_final_state ? ",\"final\":true}\n" : "}\n");
      }
      for (size_t i = 0; i < device.events.size(); ++i) {
        WriteEvent(device, i);
        output_.MaybeFlush();
      }
      for (const MemoryNote& note : device.notes) WriteNote(device.device, note);
      for (const SegmentInfo& segment : device.final_state) {
        WriteSegment(device.device, segment);
        output_.MaybeFlush();
      }
    }
    for (const Annotation& annotation : trace_.annotations) WriteAnnotation(annotation);
    WriteDiagnostics();
    return output_.Finish();
  }

 private:
  void Text(std::string_view key, std::string_view text) {
    StrAppend(&out_, ",\"", key, "\":");
    AppendJsonString(text, &out_);
  }
  void DeviceMember(int device) {
    if (names_device_) StrAppend(&out_, ",\"d\":", device);
  }
  void PoolMember(PoolId pool) { StrAppend(&out_, ",\"p\":[", pool.first, ",", pool.second, "]"); }
  void StackMember(uint32_t stack) {
    if (stack != kNoStack) StrAppend(&out_, ",\"st\":", stack_numbers_[stack]);
  }

  absl::Status Header() {
    const std::vector<StreamHandle>& streams = trace_.streams;
    const size_t devices = trace_.devices.size();
    StrAppend(&out_, "{\"k\":\"h\",\"format\":\"", kFlatFormat, "\",\"version\":", kFlatVersion,
              ",\"unit\":\"B\",\"streams\":", std::min<size_t>(streams.size(), 65536),
              ",\"devices\":", std::min<size_t>(std::max<size_t>(devices, 1), 1024));
    if (!trace_.is_program) StrAppend(&out_, ",\"recorded\":true");
    if (!trace_.torch_version.empty()) Text("torch", trace_.torch_version);
    if (!trace_.ended.empty()) Text("ended", trace_.ended);
    if (trace_.settings) Settings(*trace_.settings);
    if (trace_.total_memory) StrAppend(&out_, ",\"total\":", trace_.total_memory->value());
    if (trace_.memory_fraction) {
      StrAppend(&out_, ",\"fraction\":", FormatDouble(*trace_.memory_fraction));
    }
    if (trace_.completion == Completion::kExplicit) {
      StrAppend(&out_, ",\"completion\":\"explicit\"");
    }
    if (!trace_.program_header.empty()) {
      RETURN_IF_ERROR(ProgramHeader());
    }
    // Handles ascend, so the last one reveals whether they are 0, 1, 2 ...
    if (streams.size() > 65536 ||
        (!streams.empty() && streams.back().value() != streams.size() - 1)) {
      StrAppend(&out_, ",\"stream_table\":[");
      for (size_t i = 0; i < streams.size(); ++i) {
        StrAppend(&out_, i == 0 ? "" : ",", streams[i].value());
      }
      StrAppend(&out_, "]");
    }
    if (trace_.pools.size() > 1) {
      StrAppend(&out_, ",\"pool_table\":[");
      for (size_t i = 0; i < trace_.pools.size(); ++i) {
        StrAppend(&out_, i == 0 ? "[" : ",[", trace_.pools[i].first, ",", trace_.pools[i].second,
                  "]");
      }
      StrAppend(&out_, "]");
    }
    std::string facts;
    for (const LayoutField& field : kLayoutFields) {
      if (!(trace_.layout.*field.field)) continue;
      StrAppend(&facts, facts.empty() ? "\"" : ",\"", field.name, "\"");
    }
    if (!facts.empty()) StrAppend(&out_, ",\"layout\":[", facts, "]");
    if (trace_.layout.pickle_protocol != 0) {
      StrAppend(&out_, ",\"pickle_protocol\":", trace_.layout.pickle_protocol);
    }
    StrAppend(&out_, "}\n");
    return absl::OkStatus();
  }

  absl::Status ProgramHeader() {
    std::vector<JsonMember> members;
    if (const auto error = ScanJsonObject(trace_.program_header, &members)) {
      return absl::FailedPreconditionError(
          StrCat("the trace is not well formed: in the program's header at byte ", error->offset,
                 ": expected ", error->expected, ", found ", error->found));
    }
    for (const JsonMember& member : members) {
      if (member.key != "config" && member.key != "seed" && member.key != "meta") {
        return absl::FailedPreconditionError(
            StrCat("the trace is not well formed: the program's header has \"", member.key,
                   "\", expected config, seed or meta"));
      }
      StrAppend(&out_, ",\"", member.key, "\":", member.value.text());
    }
    return absl::OkStatus();
  }

  void Settings(const RecordedSettings& settings) {
    Text("conf", settings.conf);
    std::string fields;
    const auto field = [&fields](std::string_view key, std::string_view value) {
      StrAppend(&fields, fields.empty() ? "\"" : ",\"", key, "\":", value);
    };
    if (settings.max_split_size) field("max_split_size", StrCat(*settings.max_split_size));
    if (settings.garbage_collection_threshold) {
      field("garbage_collection_threshold", FormatDouble(*settings.garbage_collection_threshold));
    }
    if (settings.expandable_segments) {
      field("expandable_segments", *settings.expandable_segments ? "true" : "false");
    }
    if (settings.graph_capture_record_stream_reuse) {
      field("graph_capture_record_stream_reuse",
            *settings.graph_capture_record_stream_reuse ? "true" : "false");
    }
    std::string pairs;
    for (const auto& [size, divisions] : settings.roundup_power2_divisions) {
      StrAppend(&pairs, pairs.empty() ? "[" : ",[", size, ",", divisions, "]");
    }
    if (!pairs.empty()) field("roundup_power2_divisions", StrCat("[", pairs, "]"));
    if (!fields.empty()) StrAppend(&out_, ",\"settings\":{", fields, "}");
  }

  void WriteEvent(const DeviceTrace& device, size_t index) {
    const Event& event = device.events[index];
    const FlatRecord* record = RecordOf(event);
    const bool has_label = record == nullptr || record->has_label;
    const std::string* label = nullptr;
    if (!HasText(event.kind) && event.text_or_stack != kNoStack) {
      if (has_label) label = &Label(event.text_or_stack);
      if (label == nullptr || label->empty()) {
        label = nullptr;
        DefineStack(event.text_or_stack);
      }
    }

    if (record != nullptr) {
      StrAppend(&out_, "{\"k\":\"", record->k, "\"");
    } else {
      StrAppend(&out_, "{\"k\":\"fx\",\"a\":\"", EventKindName(event.kind), "\"");
    }
    WriteIdentity(event, record);
    WriteSizeOrCount(event, record);
    if (event.block_size != Bytes()) StrAppend(&out_, ",\"bs\":", event.block_size.value());
    const bool names_stream =
        event.kind == EventKind::kFree ? names_free_stream_ : NamesStream(event);
    if ((names_stream || event.stream != 0) && event.stream < trace_.streams.size()) {
      StrAppend(&out_, ",\"s\":", trace_.streams[event.stream].value());
    }
    DeviceMember(device.device);
    if (event.pool != 0 || Requires(record, 'p')) PoolMember(trace_.pools[event.pool]);
    WriteText(event, record);
    if (label != nullptr) {
      out_.append(*label);
    } else if (!HasText(event.kind)) {
      StackMember(event.text_or_stack);
    }
    if (!device.time_us.empty()) StrAppend(&out_, ",\"ts\":", device.time_us[index]);
    out_.append("}\n");
  }

  // `record` is that of the event; null: an effect.

  void WriteIdentity(const Event& event, const FlatRecord* record) {
    const std::string_view handle = record == nullptr ? "id" : record->handle;
    const bool has_address = !event.address.is_null() || Requires(record, 'i');
    if (trace_.is_program || handle == "ev") {
      if (has_address) StrAppend(&out_, ",\"", handle, "\":", event.address.value());
      if (event.id != kNoAllocation) {
        StrAppend(&out_, trace_.is_program ? ",\"aid\":" : ",\"id\":", event.id);
      }
    } else {
      if (event.id != kNoAllocation) StrAppend(&out_, ",\"id\":", event.id);
      if (has_address) StrAppend(&out_, ",\"addr\":", event.address.value());
    }
  }

  void WriteSizeOrCount(const Event& event, const FlatRecord* record) {
    if (event.kind == EventKind::kFailNext) {
      StrAppend(&out_, ",\"n\":", event.fail_count());
    } else if (event.kind == EventKind::kPoolCreate && record != nullptr) {
      if ((event.pool_flags() & kPoolUseOnOom) != 0) StrAppend(&out_, ",\"oom\":1");
      if ((event.pool_flags() & kPoolNoSplit) != 0) StrAppend(&out_, ",\"nosplit\":1");
    } else if (event.kind != EventKind::kMark || record == nullptr) {
      if (event.size != Bytes() || Requires(record, 'b')) {
        StrAppend(&out_, ",\"b\":", event.size.value());
      }
    }
  }

  void WriteText(const Event& event, const FlatRecord* record) {
    if (HasText(event.kind)) {
      const std::string_view text = trace_.strings[event.text_or_stack];
      const std::string_view key = record == nullptr ? "n" : record->text;
      if (event.kind == EventKind::kFraction && IsJsonNumber(text)) {
        StrAppend(&out_, ",\"", key, "\":", text);
      } else if (event.text_or_stack != kNoText || Requires(record, 't')) {
        Text(key, text);
      }
    } else if (event.kind == EventKind::kResetPeak) {
      StrAppend(&out_, ",\"n\":\"reset_peak\"");
    } else if (event.kind == EventKind::kResetAccumulated) {
      StrAppend(&out_, ",\"n\":\"reset_accumulated\"");
    }
  }

  void WriteSegment(int device, const SegmentInfo& segment) {
    DefineStack(segment.stack);
    for (const BlockInfo& block : segment.blocks) DefineStack(block.stack);
    StrAppend(&out_, "{\"k\":\"seg\",\"addr\":", segment.address.value(),
              ",\"b\":", segment.total_size.value(), ",\"s\":", segment.stream.value());
    DeviceMember(device);
    PoolMember(segment.pool_id);
    if (segment.is_large) StrAppend(&out_, ",\"large\":true");
    if (segment.is_expandable) StrAppend(&out_, ",\"expandable\":true");
    StackMember(segment.stack);
    StrAppend(&out_, "}\n");
    for (const BlockInfo& block : segment.blocks) {
      StrAppend(&out_, "{\"k\":\"blk\",\"addr\":", block.address.value(),
                ",\"b\":", block.size.value(), ",\"req\":", block.requested_size.value(),
                ",\"state\":\"", BlockStateName(block.state), "\"");
      if (block.id != kNoAllocation) StrAppend(&out_, ",\"id\":", block.id);
      StackMember(block.stack);
      StrAppend(&out_, "}\n");
    }
  }

  void WriteAnnotation(const Annotation& annotation) {
    StrAppend(&out_, "{\"k\":\"ann\"");
    Text("n", trace_.strings[annotation.name]);
    Text("stage", trace_.strings[annotation.stage]);
    StrAppend(&out_, ",\"d\":", annotation.device, ",\"ts\":", annotation.time_us, "}\n");
    output_.MaybeFlush();
  }

  void WriteNote(int device, const MemoryNote& note) {
    StrAppend(&out_, "{\"k\":\"note\",\"what\":\"", kNoteNames[static_cast<size_t>(note.kind)],
              "\",\"i\":", note.event);
    if (note.name != kNoText) Text("n", trace_.strings[note.name]);
    if (!note.address.is_null()) StrAppend(&out_, ",\"addr\":", note.address.value());
    DeviceMember(device);
    StrAppend(&out_, "}\n");
    output_.MaybeFlush();
  }

  void WriteDiagnostics() {
    for (int i = 0; i < static_cast<int>(DiagnosticKind::kCount); ++i) {
      const auto kind = static_cast<DiagnosticKind>(i);
      if (trace_.diagnostics.count(kind) == 0) continue;
      StrAppend(&out_, "{\"k\":\"diag\",\"n\":\"", DescribeDiagnostic(kind).name,
                "\",\"count\":", trace_.diagnostics.count(kind), ",\"places\":[");
      bool first = true;
      for (const Diagnostics::Place& place : trace_.diagnostics.places(kind)) {
        StrAppend(&out_, first ? "[" : ",[", place.position, ",");
        AppendJsonString(place.detail, &out_);
        StrAppend(&out_, "]");
        first = false;
      }
      StrAppend(&out_, "]}\n");
    }
  }

  const std::string& Label(uint32_t stack) {
    if (labels_[stack].empty()) labels_[stack] = MakeLabel(stack);
    return labels_[stack];
  }

  // Returns the members t, n, dt, sh, saved that read back as this stack; empty if there are none.
  std::string MakeLabel(uint32_t stack) {
    const absl::Span<const uint32_t> frames = trace_.stacks[stack];
    if (frames.empty() || frames.size() > 2) return "";
    const Frame& frame = trace_.stacks.frame(frames[0]);
    if (frame.line != 0) return "";
    std::string label;
    if (frame.filename != kNoText) {
      StrAppend(&label, ",\"t\":");
      AppendJsonString(trace_.strings[frame.filename], &label);
    }
    if (frame.name != kNoText) {
      StrAppend(&label, ",\"n\":");
      AppendJsonString(trace_.strings[frame.name], &label);
    }
    if (frames.size() == 1) return label;
    const Frame& tensor = trace_.stacks.frame(frames[1]);
    if (tensor.line != 0 || trace_.strings[tensor.filename] != kTensorFrame) return "";
    const std::string_view text = trace_.strings[tensor.name];
    if (text.find('\n') != std::string_view::npos) return "";
    std::vector<JsonMember> members;
    const std::string object = StrCat("{", text, "}");  // the members are views into it
    if (ScanJsonObject(object, &members) || members.empty()) return "";
    // The reader's order and spacing are required for the members to read back the same.
    std::string canonical;
    for (const std::string_view key : {"dt", "sh", "saved"}) {
      for (const JsonMember& member : members) {
        if (member.key != key) continue;
        StrAppend(&canonical, canonical.empty() ? "\"" : ",\"", key, "\":", member.value.text());
      }
    }
    if (canonical != text) return "";
    return StrCat(label, ",", canonical);
  }

  // Defines a stack on lines of its own, before the line that uses it.
  void DefineStack(uint32_t stack) {
    if (stack == kNoStack || stack_numbers_[stack] != 0) return;
    for (const uint32_t index : trace_.stacks[stack]) {
      if (frame_numbers_[index] != 0) continue;
      const Frame& frame = trace_.stacks.frame(index);
      frame_numbers_[index] = ++frames_;
      StrAppend(&out_, "{\"k\":\"fr\",\"i\":", frames_);
      Text("file", trace_.strings[frame.filename]);
      StrAppend(&out_, ",\"line\":", frame.line);
      Text("name", trace_.strings[frame.name]);
      StrAppend(&out_, "}\n");
    }
    stack_numbers_[stack] = ++stacks_;
    StrAppend(&out_, "{\"k\":\"st\",\"i\":", stacks_, ",\"f\":[");
    bool first = true;
    for (const uint32_t index : trace_.stacks[stack]) {
      StrAppend(&out_, first ? "" : ",", frame_numbers_[index]);
      first = false;
    }
    StrAppend(&out_, "]}\n");
  }

  const Trace& trace_;
  BufferedOutput output_;
  std::string& out_;
  bool names_free_stream_;
  bool names_device_;
  // Numbers in the file by index in the tables; 0: not defined yet.
  std::vector<uint32_t> frame_numbers_;
  std::vector<uint32_t> stack_numbers_;
  uint32_t frames_ = 0;
  uint32_t stacks_ = 0;
  std::vector<std::string> labels_;  // by stack; empty: not created yet
};

}  // namespace

absl::Status WriteFlatJsonl(const Trace& trace, ByteSink& sink) {
  return FlatJsonlWriter(trace, sink).Write();
}

}  // namespace memreplay
