#include "trace/formats/flat/flat_tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "trace/formats/flat/flat_records.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Type = JsonValue::Type;

constexpr int kMaxDeclaredDevices = 1024;
constexpr uint64_t kMaxDeclaredStreams = 65536;

bool ReadSettings(const JsonMember& member, JsonRecord& record, Trace& trace) {
  if (member.value.type != Type::kObject) return record.Fail(member, "an object");
  if (!trace.settings) trace.settings.emplace();
  RecordedSettings& settings = *trace.settings;
  std::vector<JsonMember> fields;
  ScanJsonObject(member.value.raw, &fields);
  for (const JsonMember& field : fields) {
    bool ok = true;
    if (field.key == "max_split_size") {
      ok = record.Signed(field, &settings.max_split_size.emplace());
    } else if (field.key == "garbage_collection_threshold") {
      ok = record.Double(field, &settings.garbage_collection_threshold.emplace());
    } else if (field.key == "expandable_segments") {
      ok = record.Bool(field, &settings.expandable_segments.emplace());
    } else if (field.key == "graph_capture_record_stream_reuse") {
      ok = record.Bool(field, &settings.graph_capture_record_stream_reuse.emplace());
    } else if (field.key == "roundup_power2_divisions") {
      ok = record.Pairs(field, &settings.roundup_power2_divisions);
    } else {
      trace.diagnostics.Add(DiagnosticKind::kUnknownKey, record.PlaceOf(field.value),
                            StrCat("key 'settings.", field.key, "'"));
    }
    if (!ok) return false;
  }
  return true;
}

// Reads the streams and pools.
bool ReadTables(JsonRecord& record, TraceBuilder& builder) {
  uint64_t number = 0;
  const JsonMember* table = record.Find("stream_table");
  if (const JsonMember* streams = record.Find("streams")) {
    if (!record.Below(*streams, kMaxDeclaredStreams + 1, &number)) return false;
    for (uint64_t i = 0; table == nullptr && i < number; ++i) {
      builder.StreamNumber(StreamHandle(i));
    }
  }
  if (table != nullptr) {
    std::vector<uint64_t> handles;
    if (!record.Numbers(*table, &handles)) return false;
    for (const uint64_t handle : handles) {
      if (builder.StreamNumber(StreamHandle(handle)) == TraceBuilder::kNoStream) {
        return record.Fail(*table, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
      }
    }
  }
  if (const JsonMember* pools = record.Find("pool_table")) {
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    if (!record.Pairs(*pools, &pairs)) return false;
    for (const auto& [first, second] : pairs) {
      if (!builder.PoolIndex({first, second})) return record.Fail(*pools, "at most 65536 pools");
    }
  }
  return true;
}

bool ReadLayout(JsonRecord& record, Trace& trace) {
  if (const JsonMember* layout = record.Find("layout")) {
    std::vector<JsonValue> names;
    if (!record.Array(*layout, &names)) return false;
    for (const JsonValue& name : names) {
      if (name.type != Type::kString || !trace.layout.Set(name.raw)) {
        return record.Fail(name.raw, "a fact of the layout", JsonRecord::Describe(name));
      }
    }
  }
  uint64_t number = 0;
  if (const JsonMember* protocol = record.Find("pickle_protocol")) {
    if (!record.Below(*protocol, 256, &number)) return false;
    trace.layout.pickle_protocol = static_cast<int>(number);
  }
  return true;
}

}  // namespace

bool FlatTables::Header(int* declared_devices) {
  Trace& trace = builder_.trace();
  std::string_view text;
  uint64_t number = 0;
  if (!record_.Required("format", &text)) return false;
  if (text != kFlatFormat) {
    return record_.Fail(*record_.Find("format"), StrCat("\"", kFlatFormat, "\""));
  }
  if (!record_.Required("version", &number)) return false;
  if (number != kFlatVersion) return record_.Fail(*record_.Find("version"), StrCat(kFlatVersion));
  std::string_view unit = "B";
  if (!record_.Optional("unit", &unit)) return false;
  if (unit != "B") return record_.Fail(*record_.Find("unit"), "\"B\"");
  bool is_recorded = !trace.is_program;
  if (!record_.Optional("recorded", &is_recorded)) return false;
  trace.is_program = !is_recorded;
  if (const JsonMember* devices = record_.Find("devices")) {
    if (!record_.Below(*devices, kMaxDeclaredDevices + 1, &number)) return false;
    *declared_devices = static_cast<int>(std::max<uint64_t>(number, 1));
  }
  if (!ReadTables(record_, builder_)) return false;
  if (!record_.Optional("torch", &trace.torch_version) ||
      !record_.Optional("ended", &trace.ended) || !record_.Optional("total", &trace.total_memory) ||
      !record_.Optional("fraction", &trace.memory_fraction)) {
    return false;
  }
  std::string_view completion = "at_once";
  if (!record_.Optional("completion", &completion)) return false;
  if (completion != "at_once" && completion != "explicit") {
    return record_.Fail(*record_.Find("completion"), "\"at_once\" or \"explicit\"");
  }
  trace.completion = completion == "explicit" ? Completion::kExplicit : Completion::kAtOnce;
  std::optional<std::string> conf;
  if (!record_.Optional("conf", &conf)) return false;
  if (conf) trace.settings.emplace().conf = *conf;
  if (const JsonMember* settings = record_.Find("settings");
      settings != nullptr && !ReadSettings(*settings, record_, trace)) {
    return false;
  }
  if (!ReadLayout(record_, trace)) return false;
  // Members on the origin of the schedule are kept unchanged.
  for (const std::string_view key : {"config", "seed", "meta"}) {
    const JsonMember* member = record_.Find(key);
    if (member == nullptr) continue;
    std::string& kept = trace.program_header;
    StrAppend(&kept, kept.empty() ? "{\"" : ",\"", key, "\":", member->value.text());
  }
  if (!trace.program_header.empty()) trace.program_header += "}";
  return true;
}

bool FlatTables::Read() {
  static constexpr std::pair<std::string_view, bool (FlatTables::*)()> kRecords[] = {
      {"fr", &FlatTables::FrameRecord},   {"st", &FlatTables::StackRecord},
      {"dev", &FlatTables::DeviceRecord}, {"seg", &FlatTables::SegmentRecord},
      {"blk", &FlatTables::BlockRecord},  {"ann", &FlatTables::AnnotationRecord},
      {"note", &FlatTables::NoteRecord},  {"diag", &FlatTables::DiagnosticRecord}};
  for (const auto& [kind, read] : kRecords) {
    if (kind == record_.kind()) return (this->*read)();
  }
  return record_.Fail(*record_.Find("k"), "a known record");
}

bool FlatTables::Device(int* device) {
  const JsonMember* member = record_.Find("d");
  uint64_t number = static_cast<uint64_t>(*device);
  if (member != nullptr && !record_.Below(*member, uint64_t{1} << 31, &number)) return false;
  *device = static_cast<int>(number);
  return true;
}

bool FlatTables::Index(size_t expected) {
  uint64_t number = 0;
  if (!record_.Required("i", &number)) return false;
  return number == expected || record_.Fail(*record_.Find("i"), StrCat(expected));
}

bool FlatTables::DefinedStack(uint32_t* stack) {
  const JsonMember* member = record_.Find("st");
  if (member == nullptr) return true;
  uint64_t number = 0;
  if (!record_.Unsigned(*member, &number)) return false;
  if (number >= stacks_.size()) {
    return record_.Fail(*member, "a stack that an \"st\" record defined");
  }
  *stack = stacks_[number];
  return true;
}

bool FlatTables::FrameRecord() {
  Trace& trace = builder_.trace();
  std::string_view file, name;
  uint64_t line = 0;
  if (!Index(frames_.size()) || !record_.Optional("file", &file) ||
      !record_.Optional("name", &name)) {
    return false;
  }
  if (const JsonMember* member = record_.Find("line")) {
    if (!record_.Below(*member, uint64_t{1} << 32, &line)) return false;
  }
  frames_.push_back(trace.stacks.InternFrame(
      {trace.strings.Intern(file), trace.strings.Intern(name), static_cast<uint32_t>(line)}));
  return true;
}

bool FlatTables::StackRecord() {
  if (!Index(stacks_.size())) return false;
  const JsonMember* f = record_.Find("f");
  if (f == nullptr) return record_.Missing("f");
  std::vector<uint64_t> numbers;
  if (!record_.Numbers(*f, &numbers)) return false;
  scratch_.clear();
  for (const uint64_t frame : numbers) {
    if (frame == 0 || frame >= frames_.size()) {
      return record_.Fail(*f, "frames that \"fr\" records defined");
    }
    scratch_.push_back(frames_[frame]);
  }
  stacks_.push_back(builder_.trace().stacks.InternStack(scratch_));
  return true;
}

bool FlatTables::DeviceRecord() {
  int device = 0;
  bool has_final = false;
  if (!Device(&device) || !record_.Optional("final", &has_final)) return false;
  DeviceTrace& trace = builder_.Device(device);
  trace.has_final_state = trace.has_final_state || has_final;
  return true;
}

bool FlatTables::SegmentRecord() {
  SegmentInfo segment;
  int device = 0;
  if (!Device(&device) || !record_.Required("addr", &segment.address) ||
      !record_.Required("b", &segment.total_size) || !record_.Optional("s", &segment.stream) ||
      !record_.Optional("p", &segment.pool_id) || !record_.Optional("large", &segment.is_large) ||
      !record_.Optional("expandable", &segment.is_expandable) || !DefinedStack(&segment.stack)) {
    return false;
  }
  DeviceTrace& trace = builder_.Device(device);
  trace.has_final_state = true;
  trace.final_state.push_back(std::move(segment));
  segment_device_ = device;
  return true;
}

bool FlatTables::BlockRecord() {
  if (segment_device_ < 0)
    return record_.FailAt(0, "a record \"seg\" before the first \"blk\"", "none");
  BlockInfo block;
  std::string_view name = BlockStateName(block.state);
  if (!record_.Required("b", &block.size) || !record_.Optional("addr", &block.address) ||
      !record_.Optional("req", &block.requested_size) || !record_.Optional("state", &name)) {
    return false;
  }
  const std::optional<BlockState> state = BlockStateFromName(name);
  if (!state) return record_.Fail(*record_.Find("state"), "a state of a block");
  block.state = *state;
  if (const JsonMember* id = record_.Find("id")) {
    uint64_t number = 0;
    if (!record_.Below(*id, kNoAllocation, &number)) return false;
    block.id = static_cast<AllocationId>(number);
  }
  if (!DefinedStack(&block.stack)) return false;
  builder_.Device(segment_device_).final_state.back().blocks.push_back(block);
  return true;
}

bool FlatTables::AnnotationRecord() {
  Trace& trace = builder_.trace();
  Annotation annotation;
  std::string_view name, stage;
  int64_t number = 0;
  if (!record_.Optional("n", &name) || !record_.Optional("stage", &stage)) return false;
  annotation.name = trace.strings.Intern(name);
  annotation.stage = trace.strings.Intern(stage);
  if (const JsonMember* device = record_.Find("d")) {
    if (!record_.Signed(*device, &number)) return false;
    annotation.device = static_cast<int>(number);
    if (annotation.device != number) return record_.Fail(*device, "a 32-bit integer");
  }
  if (!record_.Optional("ts", &annotation.time_us)) return false;
  trace.annotations.push_back(annotation);
  return true;
}

bool FlatTables::NoteRecord() {
  MemoryNote note;
  int device = 0;
  std::string_view text;
  if (!Device(&device) || !record_.Required("what", &text)) return false;
  const JsonMember* event = record_.Find("i");
  if (event == nullptr) return record_.Missing("i");
  const std::optional<NoteKind> kind = NoteKindFromName(text);
  if (!kind) return record_.Fail(*record_.Find("what"), "a kind of note");
  note.kind = *kind;
  DeviceTrace& trace = builder_.Device(device);
  if (!record_.Below(*event, trace.events.size() + 1, &note.event)) return false;
  if (!trace.notes.empty() && note.event < trace.notes.back().event) {
    return record_.Fail(
        *event, StrCat("notes in the order of events: ", trace.notes.back().event, " or more"));
  }
  std::string_view name;
  if (!record_.Optional("n", &name) || !record_.Optional("addr", &note.address)) return false;
  note.name = builder_.trace().strings.Intern(name);
  trace.notes.push_back(note);
  return true;
}

bool FlatTables::DiagnosticRecord() {
  std::string_view text;
  uint64_t number = 0;
  if (!record_.Required("n", &text) || !record_.Required("count", &number)) return false;
  const std::optional<DiagnosticKind> kind = DiagnosticFromName(text);
  if (!kind) return record_.Fail(*record_.Find("n"), "a diagnostic");
  std::vector<Diagnostics::Place> places;
  if (const JsonMember* list = record_.Find("places")) {
    std::vector<JsonValue> elements;
    if (!record_.Array(*list, &elements)) return false;
    for (const JsonValue& element : elements) {
      std::vector<JsonValue> pair;
      std::optional<uint64_t> position;
      if (element.type == Type::kArray) ScanJsonArray(element.raw, &pair);
      if (pair.size() == 2 && pair[0].type == Type::kNumber && pair[1].type == Type::kString) {
        position = ParseUint64(pair[0].raw);
      }
      if (!position) return record_.Fail(*list, "pairs of a position and a text");
      places.push_back({*position, std::string(record_.Text(pair[1]))});
    }
  }
  builder_.trace().diagnostics.Restore(*kind, number, std::move(places));
  return true;
}

}  // namespace memreplay
