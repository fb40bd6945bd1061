#include "trace/formats/flat/flat_tables.h"

#include <optional>
#include <string>
#include <utility>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Type = JsonValue::Type;

}  // namespace

bool FlatTables::Read(std::string_view kind, bool* known) {
  kind_ = kind;
  *known = true;
  if (kind_ == "fr") return FrameRecord();
  if (kind_ == "st") return StackRecord();
  if (kind_ == "dev") return DeviceRecord();
  if (kind_ == "seg") return SegmentRecord();
  if (kind_ == "blk") return BlockRecord();
  if (kind_ == "ann") return AnnotationRecord();
  if (kind_ == "note") return NoteRecord();
  if (kind_ == "diag") return DiagnosticRecord();
  *known = false;
  return true;
}

bool FlatTables::Missing(std::string_view key) {
  return record_.Missing(key, StrCat("a record \"", kind_, "\""));
}

bool FlatTables::Device(int* device) {
  const JsonMember* member = record_.Find("d");
  uint64_t number = 0;
  if (member == nullptr) return true;
  if (!record_.Below(*member, uint64_t{1} << 31, &number)) return false;
  *device = static_cast<int>(number);
  return true;
}

bool FlatTables::DefinedStack(const JsonMember& member, uint32_t* stack) {
  uint64_t number = 0;
  if (!record_.Unsigned(member, &number)) return false;
  if (number >= stacks_.size())
    return record_.Fail(member, "a stack that an \"st\" record defined");
  *stack = stacks_[number];
  return true;
}

bool FlatTables::FrameRecord() {
  Trace& trace = builder_.trace();
  uint64_t number = 0;
  const JsonMember* i = record_.Find("i");
  if (i == nullptr) return Missing("i");
  if (!record_.Unsigned(*i, &number)) return false;
  if (number != frames_.size()) return record_.Fail(*i, StrCat(frames_.size()));
  std::string_view file, name;
  uint64_t line = 0;
  if (!record_.Optional("file", &file) || !record_.Optional("name", &name)) return false;
  if (const JsonMember* member = record_.Find("line")) {
    if (!record_.Below(*member, uint64_t{1} << 32, &line)) return false;
  }
  frames_.push_back(trace.stacks.InternFrame(
      {trace.strings.Intern(file), trace.strings.Intern(name), static_cast<uint32_t>(line)}));
  return true;
}

bool FlatTables::StackRecord() {
  uint64_t number = 0;
  const JsonMember* i = record_.Find("i");
  const JsonMember* f = record_.Find("f");
  if (i == nullptr) return Missing("i");
  if (f == nullptr) return Missing("f");
  if (!record_.Unsigned(*i, &number)) return false;
  if (number != stacks_.size()) return record_.Fail(*i, StrCat(stacks_.size()));
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
  uint64_t number = 0;
  int device = 0;
  if (!Device(&device)) return false;
  const JsonMember* address = record_.Find("addr");
  const JsonMember* size = record_.Find("b");
  if (address == nullptr) return Missing("addr");
  if (size == nullptr) return Missing("b");
  if (!record_.Unsigned(*address, &number)) return false;
  segment.address = Address(number);
  if (!record_.Unsigned(*size, &number)) return false;
  segment.total_size = Bytes(number);
  if (!record_.Optional("s", &segment.stream) || !record_.Optional("p", &segment.pool_id) ||
      !record_.Optional("large", &segment.is_large) ||
      !record_.Optional("expandable", &segment.is_expandable)) {
    return false;
  }
  if (const JsonMember* m = record_.Find("st"); m && !DefinedStack(*m, &segment.stack))
    return false;
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
  uint64_t number = 0;
  const JsonMember* size = record_.Find("b");
  if (size == nullptr) return Missing("b");
  if (!record_.Unsigned(*size, &number)) return false;
  block.size = Bytes(number);
  if (!record_.Optional("addr", &block.address) ||
      !record_.Optional("req", &block.requested_size)) {
    return false;
  }
  if (const JsonMember* state = record_.Find("state")) {
    std::string_view name;
    if (!record_.String(*state, &name)) return false;
    const std::optional<BlockState> named = BlockStateFromName(name);
    if (!named) return record_.Fail(*state, "a state of a block");
    block.state = *named;
  }
  if (const JsonMember* id = record_.Find("id")) {
    if (!record_.Below(*id, kNoAllocation, &number)) return false;
    block.id = static_cast<AllocationId>(number);
  }
  if (const JsonMember* m = record_.Find("st"); m && !DefinedStack(*m, &block.stack)) return false;
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
  if (!Device(&device)) return false;
  const JsonMember* what = record_.Find("what");
  const JsonMember* event = record_.Find("i");
  if (what == nullptr) return Missing("what");
  if (event == nullptr) return Missing("i");
  if (!record_.String(*what, &text)) return false;
  const std::optional<NoteKind> kind = NoteKindFromName(text);
  if (!kind) return record_.Fail(*what, "a kind of note");
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
  const JsonMember* name = record_.Find("n");
  const JsonMember* count = record_.Find("count");
  if (name == nullptr) return Missing("n");
  if (count == nullptr) return Missing("count");
  std::string_view text;
  uint64_t number = 0;
  if (!record_.String(*name, &text) || !record_.Unsigned(*count, &number)) return false;
  const std::optional<DiagnosticKind> kind = DiagnosticFromName(text);
  if (!kind) return record_.Fail(*name, "a diagnostic");
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
