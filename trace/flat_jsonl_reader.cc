#include "trace/flat_jsonl_reader.h"

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/flat_records.h"
#include "trace/json_scanner.h"
#include "trace/layout_fields.h"
#include "trace/strings.h"
#include "trace/trace_builder.h"

namespace memreplay {
namespace {

using Type = JsonValue::Type;

constexpr size_t kMaxLine = size_t{64} << 20;
constexpr int kMaxDeclaredDevices = 1024;
constexpr uint64_t kMaxDeclaredStreams = 65536;

// The index in kFlatRecords of a one- or two-letter name, by a small table; the
// longer names are searched.
const FlatRecord* FindRecord(std::string_view k) {
  static const std::array<const FlatRecord*, 128> kByLetter = [] {
    std::array<const FlatRecord*, 128> table{};
    for (const FlatRecord& record : kFlatRecords) {
      if (record.k.size() == 1) table[static_cast<unsigned char>(record.k[0])] = &record;
    }
    return table;
  }();
  if (k.size() == 1) {
    const auto c = static_cast<unsigned char>(k[0]);
    return c < 128 ? kByLetter[c] : nullptr;
  }
  for (const FlatRecord& record : kFlatRecords) {
    if (record.k == k) return &record;
  }
  return nullptr;
}

class FlatJsonlReader {
 public:
  explicit FlatJsonlReader(ByteSource& source) : source_(source), builder_("flat_jsonl") {
    builder_.trace().is_program = true;
  }

  absl::StatusOr<Trace> Read() {
    while (true) {
      line_begin_ = source_.position();
      if (!source_.ReadLine(&line_, kMaxLine)) break;
      ++line_number_;
      if (!Line()) return std::move(error_);
    }
    if (!source_.status().ok()) return source_.status();
    return std::move(builder_).Finish();
  }

 private:
  // All below return false after an error, which is then in error_.

  bool FailAt(size_t offset, std::string_view expected, std::string_view found) {
    error_ =
        absl::InvalidArgumentError(StrCat("line ", line_number_, ", byte ", line_begin_ + offset,
                                          ": expected ", expected, ", found ", found));
    return false;
  }
  // `place` is a view into the line.
  bool Fail(std::string_view place, std::string_view expected, std::string_view found) {
    return FailAt(static_cast<size_t>(place.data() - line_.data()), expected, found);
  }
  bool Fail(const JsonMember& member, std::string_view expected) {
    return Fail(member.value.raw, StrCat(expected, " for \"", member.key, "\""),
                Describe(member.value));
  }
  static std::string Describe(const JsonValue& value) {
    std::string_view shown = value.raw.substr(0, 40);
    std::string text = value.type == Type::kString ? StrCat("\"", shown, "\"") : std::string(shown);
    if (shown.size() < value.raw.size()) text += "...";
    return text;
  }

  // A view of `text` that lives as long as the line.
  std::string_view Hold(std::string text) {
    held_.push_back(std::move(text));
    return held_.back();
  }
  std::string_view Text(const JsonValue& value) {
    return value.has_escape ? Hold(UnescapeJson(value.raw)) : value.raw;
  }

  // The member, marked as used; null if absent.
  JsonMember* Find(std::string_view key) {
    for (JsonMember& member : members_) {
      if (member.key == key) {
        member.used = true;
        return &member;
      }
    }
    return nullptr;
  }
  bool Missing(std::string_view key) {
    return FailAt(0, StrCat("a member \"", key, "\" in a record \"", kind_, "\""), "none");
  }

  bool Unsigned(const JsonMember& member, uint64_t* value) {
    if (member.value.type == Type::kNumber) {
      if (const auto parsed = ParseUint64(member.value.raw)) {
        *value = *parsed;
        return true;
      }
    }
    return Fail(member, "an integer from 0 to 18446744073709551615");
  }
  bool Signed(const JsonMember& member, int64_t* value) {
    if (member.value.type == Type::kNumber) {
      if (const auto parsed = ParseInt64(member.value.raw)) {
        *value = *parsed;
        return true;
      }
    }
    return Fail(member, "a 64-bit integer");
  }
  bool Below(const JsonMember& member, uint64_t limit, uint64_t* value) {
    if (!Unsigned(member, value)) return false;
    return *value < limit || Fail(member, StrCat("an integer below ", limit));
  }
  bool String(const JsonMember& member, std::string_view* text) {
    if (member.value.type != Type::kString) return Fail(member, "a string");
    *text = Text(member.value);
    return true;
  }
  bool Bool(const JsonMember& member, bool* value) {
    if (member.value.type != Type::kTrue && member.value.type != Type::kFalse) {
      return Fail(member, "true or false");
    }
    *value = member.value.type == Type::kTrue;
    return true;
  }
  bool Double(const JsonMember& member, double* value) {
    const auto parsed =
        member.value.type == Type::kNumber ? ParseJsonDouble(member.value.raw) : std::nullopt;
    if (!parsed) return Fail(member, "a number");
    *value = *parsed;
    return true;
  }
  bool Array(const JsonMember& member, std::vector<JsonValue>* elements) {
    if (member.value.type != Type::kArray) return Fail(member, "a list");
    ScanJsonArray(member.value.raw, elements);  // its grammar was checked with the line's
    return true;
  }
  bool Numbers(const JsonMember& member, std::vector<uint64_t>* numbers) {
    std::vector<JsonValue> elements;
    if (!Array(member, &elements)) return false;
    numbers->clear();
    for (const JsonValue& element : elements) {
      const auto parsed = element.type == Type::kNumber ? ParseUint64(element.raw) : std::nullopt;
      if (!parsed) {
        return Fail(element.raw, StrCat("non-negative integers in \"", member.key, "\""),
                    Describe(element));
      }
      numbers->push_back(*parsed);
    }
    return true;
  }
  // [[a,b],...]
  bool Pairs(const JsonMember& member, std::vector<std::pair<uint64_t, uint64_t>>* pairs) {
    std::vector<JsonValue> elements;
    if (!Array(member, &elements)) return false;
    pairs->clear();
    for (const JsonValue& element : elements) {
      const JsonMember pair{member.key, element};
      std::vector<uint64_t> numbers;
      if (!Numbers(pair, &numbers)) return false;
      if (numbers.size() != 2) return Fail(pair, "pairs of integers");
      pairs->push_back({numbers[0], numbers[1]});
    }
    return true;
  }
  bool Pool(const JsonMember& member, PoolId* pool) {
    std::vector<uint64_t> numbers;
    if (!Numbers(member, &numbers)) return false;
    if (numbers.size() != 2) return Fail(member, "a pair of integers");
    *pool = {numbers[0], numbers[1]};
    return true;
  }
  bool Stream(const JsonMember& member, uint32_t* stream) {
    uint64_t handle = 0;
    if (!Unsigned(member, &handle)) return false;
    *stream = builder_.StreamNumber(StreamHandle(handle));
    return *stream != TraceBuilder::kNoStream ||
           Fail(member, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
  }
  bool DefinedStack(const JsonMember& member, uint32_t* stack) {
    uint64_t number = 0;
    if (!Unsigned(member, &number)) return false;
    if (number >= stacks_.size()) return Fail(member, "a stack that an \"st\" record defined");
    *stack = stacks_[number];
    return true;
  }

  bool Line();
  bool Header();
  bool Settings(const JsonMember& member);
  bool EventRecord(const FlatRecord& record);
  bool Label(Event* event);
  bool OwnRecord(bool* known);
  bool FrameRecord();
  bool StackRecord();
  bool DeviceRecord();
  bool SegmentRecord();
  bool BlockRecord();
  bool AnnotationRecord();
  bool DiagnosticRecord();
  bool Device(int* device);
  void CountUnknown();

  ByteSource& source_;
  TraceBuilder builder_;
  absl::Status error_;

  uint64_t line_begin_ = 0;
  uint64_t line_number_ = 0;
  std::string_view line_;
  std::string_view kind_;  // "k" of this line
  std::vector<JsonMember> members_;
  std::deque<std::string> held_;

  bool is_first_ = true;
  int declared_devices_ = 1;
  // Live handles whose allocation was not on device 0 and stream 0: where a
  // free or use of them goes if it does not say.
  struct Home {
    int device;
    uint32_t stream;
  };
  absl::flat_hash_map<uint64_t, Home> homes_;
  // Numbers in the file -> indexes in the tables. Number 0 is none.
  std::vector<uint32_t> frames_ = {0};
  std::vector<uint32_t> stacks_ = {kNoStack};
  std::vector<uint32_t> scratch_;
  // Segment that block records belong to; device < 0: none yet.
  int segment_device_ = -1;
};

bool FlatJsonlReader::Line() {
  if (line_.find_first_not_of(" \t\r") == std::string_view::npos) return true;
  held_.clear();
  if (auto error = ScanJsonObject(line_, &members_)) {
    return FailAt(error->offset, error->expected, error->found);
  }
  for (JsonMember& member : members_) {
    if (member.key.find('\\') != std::string_view::npos)
      member.key = Hold(UnescapeJson(member.key));
  }
  kind_ = "";
  JsonMember* k = Find("k");
  if (k == nullptr) return FailAt(0, "a member \"k\"", "none");
  if (!String(*k, &kind_)) return false;
  const bool is_first = std::exchange(is_first_, false);

  if (const FlatRecord* record = FindRecord(kind_)) {
    if (!EventRecord(*record)) return false;
  } else if (kind_ == "h") {
    if (!is_first) return Fail(k->value.raw, "the header \"h\" on the first line only", "another");
    if (!Header()) return false;
  } else {
    bool known = false;
    if (!OwnRecord(&known)) return false;
    if (!known) return Fail(*k, "a known record");
  }
  CountUnknown();
  // A key that comes twice is found once: the other is still unused.
  for (const JsonMember& member : members_) {
    if (member.used) continue;
    for (const JsonMember& other : members_) {
      if (other.used && other.key == member.key) {
        return Fail(member.value.raw, "each key once", StrCat("\"", member.key, "\" again"));
      }
    }
  }
  return true;
}

void FlatJsonlReader::CountUnknown() {
  for (const JsonMember& member : members_) {
    if (member.used) continue;
    const auto place = static_cast<size_t>(member.value.raw.data() - line_.data());
    builder_.trace().diagnostics.Add(DiagnosticKind::kUnknownKey, line_begin_ + place,
                                     StrCat("key '", member.key, "'"));
  }
}

bool FlatJsonlReader::Header() {
  Trace& trace = builder_.trace();
  std::string_view text;
  uint64_t number = 0;
  JsonMember* format = Find("format");
  if (format == nullptr) return Missing("format");
  if (!String(*format, &text)) return false;
  if (text != kFlatFormat) return Fail(*format, StrCat("\"", kFlatFormat, "\""));
  JsonMember* version = Find("version");
  if (version == nullptr) return Missing("version");
  if (!Unsigned(*version, &number)) return false;
  if (number != kFlatVersion) return Fail(*version, StrCat(kFlatVersion));
  if (JsonMember* unit = Find("unit")) {
    if (!String(*unit, &text)) return false;
    if (text != "B") return Fail(*unit, "\"B\"");
  }
  if (JsonMember* recorded = Find("recorded")) {
    bool is_recorded = false;
    if (!Bool(*recorded, &is_recorded)) return false;
    trace.is_program = !is_recorded;
  }
  if (JsonMember* devices = Find("devices")) {
    if (!Below(*devices, kMaxDeclaredDevices + 1, &number)) return false;
    declared_devices_ = static_cast<int>(std::max<uint64_t>(number, 1));
  }
  JsonMember* table = Find("stream_table");
  if (JsonMember* streams = Find("streams")) {
    if (!Below(*streams, kMaxDeclaredStreams + 1, &number)) return false;
    for (uint64_t i = 0; table == nullptr && i < number; ++i) {
      builder_.StreamNumber(StreamHandle(i));
    }
  }
  if (table != nullptr) {
    std::vector<uint64_t> handles;
    if (!Numbers(*table, &handles)) return false;
    for (const uint64_t handle : handles) {
      if (builder_.StreamNumber(StreamHandle(handle)) == TraceBuilder::kNoStream) {
        return Fail(*table, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
      }
    }
  }
  if (JsonMember* pools = Find("pool_table")) {
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    if (!Pairs(*pools, &pairs)) return false;
    for (const auto& [first, second] : pairs) {
      if (!builder_.PoolIndex({first, second})) return Fail(*pools, "at most 65536 pools");
    }
  }
  if (JsonMember* total = Find("total")) {
    if (!Unsigned(*total, &number)) return false;
    trace.total_memory = Bytes(number);
  }
  if (JsonMember* fraction = Find("fraction")) {
    double value = 0;
    if (!Double(*fraction, &value)) return false;
    trace.memory_fraction = value;
  }
  if (JsonMember* completion = Find("completion")) {
    if (!String(*completion, &text)) return false;
    if (text != "at_once" && text != "explicit") {
      return Fail(*completion, "\"at_once\" or \"explicit\"");
    }
    trace.completion = text == "explicit" ? Completion::kExplicit : Completion::kAtOnce;
  }
  if (JsonMember* conf = Find("conf")) {
    if (!String(*conf, &text)) return false;
    trace.settings.emplace().conf = std::string(text);
  }
  if (JsonMember* settings = Find("settings"); settings != nullptr && !Settings(*settings)) {
    return false;
  }
  if (JsonMember* layout = Find("layout")) {
    std::vector<JsonValue> names;
    if (!Array(*layout, &names)) return false;
    for (const JsonValue& name : names) {
      bool known = false;
      for (const LayoutField& field : kLayoutFields) {
        if (name.type != Type::kString || name.raw != field.name) continue;
        trace.layout.*field.field = true;
        known = true;
      }
      if (!known) return Fail(name.raw, "a fact of the layout", Describe(name));
    }
  }
  if (JsonMember* protocol = Find("pickle_protocol")) {
    if (!Below(*protocol, 256, &number)) return false;
    trace.layout.pickle_protocol = static_cast<int>(number);
  }
  // How the program was made: kept as it stands.
  for (JsonMember& member : members_) {
    if (member.used || (member.key != "config" && member.key != "seed" && member.key != "meta")) {
      continue;
    }
    member.used = true;
    std::string& kept = trace.program_header;
    StrAppend(&kept, kept.empty() ? "{\"" : ",\"", member.key, "\":");
    const bool quoted = member.value.type == Type::kString;
    StrAppend(&kept, quoted ? "\"" : "", member.value.raw, quoted ? "\"" : "");
  }
  if (!trace.program_header.empty()) trace.program_header += "}";
  return true;
}

bool FlatJsonlReader::Settings(const JsonMember& member) {
  if (member.value.type != Type::kObject) return Fail(member, "an object");
  Trace& trace = builder_.trace();
  if (!trace.settings) trace.settings.emplace();
  RecordedSettings& settings = *trace.settings;
  std::vector<JsonMember> fields;
  ScanJsonObject(member.value.raw, &fields);
  for (const JsonMember& field : fields) {
    bool ok = true;
    if (field.key == "max_split_size") {
      ok = Signed(field, &settings.max_split_size.emplace());
    } else if (field.key == "garbage_collection_threshold") {
      ok = Double(field, &settings.garbage_collection_threshold.emplace());
    } else if (field.key == "expandable_segments") {
      ok = Bool(field, &settings.expandable_segments.emplace());
    } else if (field.key == "graph_capture_record_stream_reuse") {
      ok = Bool(field, &settings.graph_capture_record_stream_reuse.emplace());
    } else if (field.key == "roundup_power2_divisions") {
      ok = Pairs(field, &settings.roundup_power2_divisions);
    } else {
      const auto place = static_cast<size_t>(field.value.raw.data() - line_.data());
      trace.diagnostics.Add(DiagnosticKind::kUnknownKey, line_begin_ + place,
                            StrCat("key 'settings.", field.key, "'"));
    }
    if (!ok) return false;
  }
  return true;
}

bool FlatJsonlReader::Device(int* device) {
  JsonMember* member = Find("d");
  uint64_t number = 0;
  if (member == nullptr) return true;
  if (!Below(*member, uint64_t{1} << 31, &number)) return false;
  *device = static_cast<int>(number);
  return true;
}

// The stack that t and n, or st, name.
bool FlatJsonlReader::Label(Event* event) {
  StringTable& strings = builder_.trace().strings;
  StackTable& stacks = builder_.trace().stacks;
  std::string_view tag;
  std::string_view name;
  JsonMember* t = Find("t");
  JsonMember* n = Find("n");
  if (t != nullptr && !String(*t, &tag)) return false;
  if (n != nullptr && !String(*n, &name)) return false;
  std::string tensor;
  for (const std::string_view key : {"dt", "sh", "saved"}) {
    const JsonMember* member = members_.size() > 3 ? Find(key) : nullptr;
    if (member == nullptr) continue;
    const bool quoted = member->value.type == Type::kString;
    StrAppend(&tensor, tensor.empty() ? "\"" : ",\"", key, "\":", quoted ? "\"" : "",
              member->value.raw, quoted ? "\"" : "");
  }
  if (tag.empty() && name.empty() && tensor.empty()) return true;
  uint32_t frames[2];
  size_t count = 0;
  frames[count++] = stacks.InternFrame({strings.Intern(tag), strings.Intern(name), 0});
  if (!tensor.empty()) {
    frames[count++] = stacks.InternFrame({strings.Intern(kTensorFrame), strings.Intern(tensor), 0});
  }
  event->text_or_stack = stacks.InternStack(absl::MakeConstSpan(frames, count));
  return true;
}

bool FlatJsonlReader::EventRecord(const FlatRecord& row) {
  Trace& trace = builder_.trace();
  const auto required = [&](char what) {
    return trace.is_program && row.required.find(what) != std::string_view::npos;
  };
  Event event;
  event.kind = row.kind;
  event.stream = TraceBuilder::kNoStream;
  if (row.kind == EventKind::kMark) event.size = Bytes(static_cast<uint64_t>(row.mark));
  const bool is_effect = row.k == "fx";
  const bool is_resetting =
      row.kind == EventKind::kResetPeak || row.kind == EventKind::kResetAccumulated;
  uint64_t number = 0;

  // Who: the handle of a program; address and number of a recorded trace.
  const JsonMember* handle = Find(row.handle);
  const bool is_numbered = row.handle == "ev";
  if (handle != nullptr) {
    if (trace.is_program || is_numbered) {
      if (!Unsigned(*handle, &number)) return false;
      event.address = Address(number);
    } else {
      if (!Below(*handle, kNoAllocation, &number)) return false;
      event.id = static_cast<AllocationId>(number);
    }
  } else if (required('i')) {
    return Missing(row.handle);
  }
  if (const JsonMember* address = trace.is_program || is_numbered ? nullptr : Find("addr")) {
    if (!Unsigned(*address, &number)) return false;
    event.address = Address(number);
  }
  const std::string_view id_key = trace.is_program ? "aid" : "id";
  if (const JsonMember* id = id_key == row.handle ? nullptr : Find(id_key)) {
    if (!Below(*id, kNoAllocation, &number)) return false;
    event.id = static_cast<AllocationId>(number);
  }

  // How much.
  if (row.kind == EventKind::kFailNext) {
    const JsonMember* n = Find("n");
    if (n == nullptr) return Missing("n");
    if (!Unsigned(*n, &number)) return false;
    event.size = Bytes(number);
  } else if (row.kind == EventKind::kPoolCreate && !is_effect) {
    uint64_t flags = 0;
    for (const auto& [name, flag] : {std::pair("oom", kPoolUseOnOom), {"nosplit", kPoolNoSplit}}) {
      const JsonMember* member = Find(name);
      if (member == nullptr) continue;
      if (!Below(*member, 2, &number)) return false;
      if (number == 1) flags |= flag;
    }
    event.size = Bytes(flags);
  } else if (row.kind != EventKind::kMark || is_effect) {
    if (const JsonMember* size = Find("b")) {
      if (!Unsigned(*size, &number)) return false;
      event.size = Bytes(number);
    } else if (required('b')) {
      return Missing("b");
    }
  }
  if (const JsonMember* size = Find("bs")) {
    if (!Unsigned(*size, &number)) return false;
    event.block_size = Bytes(number);
  }

  // Where.
  int device = 0;
  const bool has_device = Find("d") != nullptr;
  if (!Device(&device)) return false;
  const JsonMember* stream = Find("s");
  if (stream != nullptr && !Stream(*stream, &event.stream)) return false;
  if (stream == nullptr && required('s')) return Missing("s");
  const bool uses_handle = row.kind == EventKind::kFree || row.kind == EventKind::kRecordStream ||
                           (row.kind == EventKind::kMark && row.mark == MarkKind::kRetag);
  if (trace.is_program && uses_handle && !homes_.empty()) {
    const auto home = homes_.find(event.address.value());
    if (home != homes_.end()) {
      if (!has_device) device = home->second.device;
      if (row.kind == EventKind::kFree) {
        if (stream == nullptr) event.stream = home->second.stream;
        homes_.erase(home);
      }
    }
  }
  if (event.stream == TraceBuilder::kNoStream && NamesStream(event)) {
    event.stream = builder_.StreamNumber(StreamHandle(0));
  }
  if (trace.is_program && row.kind == EventKind::kAlloc) {
    const bool is_home = device == 0 && trace.streams[event.stream].value() == 0;
    if (!is_home) {
      homes_[event.address.value()] = {device, event.stream};
    } else if (!homes_.empty()) {
      homes_.erase(event.address.value());
    }
  }
  if (const JsonMember* member = Find("p")) {
    PoolId id;
    if (!Pool(*member, &id)) return false;
    const std::optional<uint16_t> pool = builder_.PoolIndex(id);
    if (!pool) return Fail(*member, "at most 65536 pools");
    event.pool = *pool;
  } else if (required('p')) {
    return Missing("p");
  }

  // What it is called.
  if (!row.text.empty()) {
    if (const JsonMember* member = Find(row.text)) {
      std::string_view text;
      if (row.kind == EventKind::kFraction && member->value.type == Type::kNumber) {
        text = member->value.raw;
      } else if (!String(*member, &text)) {
        return false;
      }
      event.text_or_stack = trace.strings.Intern(text);
    } else if (required('t')) {
      return Missing(row.text);
    }
  } else if (is_resetting && !is_effect) {
    const JsonMember* what = Find("n");
    if (what == nullptr) return Missing("n");
    std::string_view text;
    if (!String(*what, &text)) return false;
    if (text == "reset_peak") {
      event.kind = EventKind::kResetPeak;
    } else if (text == "reset_accumulated") {
      event.kind = EventKind::kResetAccumulated;
    } else {
      return Fail(*what, "\"reset_peak\" or \"reset_accumulated\"");
    }
  } else if (row.has_label && !Label(&event)) {
    return false;
  }
  if (!HasText(row.kind)) {
    const JsonMember* stack = Find("st");
    if (stack != nullptr && !DefinedStack(*stack, &event.text_or_stack)) return false;
  }

  // When.
  std::optional<int64_t> time;
  if (const JsonMember* ts = Find("ts")) {
    if (!Signed(*ts, &time.emplace())) return false;
  } else if (const JsonMember* dt = Find("dt_us")) {
    if (!Below(*dt, uint64_t{1} << 62, &number)) return false;
    time = static_cast<int64_t>(static_cast<uint64_t>(builder_.clock(device)) + number);
  }

  const bool concerns_all = row.kind == EventKind::kEmptyCache || is_resetting ||
                            row.kind == EventKind::kSettings || row.kind == EventKind::kMark;
  const bool repeat = concerns_all && !has_device && !uses_handle && declared_devices_ > 1;
  for (int d = repeat ? 0 : device; d < (repeat ? declared_devices_ : device + 1); ++d) {
    if (time) {
      builder_.AddAt(d, event, *time);
    } else {
      builder_.Add(d, event);
    }
  }
  return true;
}

bool FlatJsonlReader::OwnRecord(bool* known) {
  *known = true;
  if (kind_ == "fx") {
    const JsonMember* action = Find("a");
    if (action == nullptr) return Missing("a");
    std::string_view name;
    if (!String(*action, &name)) return false;
    const std::optional<EventKind> kind = EventKindFromName(name);
    if (!kind) return Fail(*action, "an action");
    FlatRecord row{"fx", *kind, {}, "", "id", "", true};
    if (HasText(*kind)) {
      row.text = "n";
      row.has_label = false;
    }
    return EventRecord(row);
  }
  if (kind_ == "fr") return FrameRecord();
  if (kind_ == "st") return StackRecord();
  if (kind_ == "dev") return DeviceRecord();
  if (kind_ == "seg") return SegmentRecord();
  if (kind_ == "blk") return BlockRecord();
  if (kind_ == "ann") return AnnotationRecord();
  if (kind_ == "diag") return DiagnosticRecord();
  *known = false;
  return true;
}

bool FlatJsonlReader::FrameRecord() {
  Trace& trace = builder_.trace();
  uint64_t number = 0;
  const JsonMember* i = Find("i");
  if (i == nullptr) return Missing("i");
  if (!Unsigned(*i, &number)) return false;
  if (number != frames_.size()) return Fail(*i, StrCat(frames_.size()));
  std::string_view file;
  std::string_view name;
  uint64_t line = 0;
  if (const JsonMember* member = Find("file"); member && !String(*member, &file)) return false;
  if (const JsonMember* member = Find("name"); member && !String(*member, &name)) return false;
  if (const JsonMember* member = Find("line")) {
    if (!Below(*member, uint64_t{1} << 32, &line)) return false;
  }
  frames_.push_back(trace.stacks.InternFrame(
      {trace.strings.Intern(file), trace.strings.Intern(name), static_cast<uint32_t>(line)}));
  return true;
}

bool FlatJsonlReader::StackRecord() {
  uint64_t number = 0;
  const JsonMember* i = Find("i");
  const JsonMember* f = Find("f");
  if (i == nullptr) return Missing("i");
  if (f == nullptr) return Missing("f");
  if (!Unsigned(*i, &number)) return false;
  if (number != stacks_.size()) return Fail(*i, StrCat(stacks_.size()));
  std::vector<uint64_t> numbers;
  if (!Numbers(*f, &numbers)) return false;
  scratch_.clear();
  for (const uint64_t frame : numbers) {
    if (frame == 0 || frame >= frames_.size()) {
      return Fail(*f, "frames that \"fr\" records defined");
    }
    scratch_.push_back(frames_[frame]);
  }
  stacks_.push_back(builder_.trace().stacks.InternStack(scratch_));
  return true;
}

bool FlatJsonlReader::DeviceRecord() {
  int device = 0;
  bool has_final = false;
  if (!Device(&device)) return false;
  if (const JsonMember* member = Find("final"); member && !Bool(*member, &has_final)) return false;
  DeviceTrace& trace = builder_.Device(device);
  trace.has_final_state = trace.has_final_state || has_final;
  return true;
}

bool FlatJsonlReader::SegmentRecord() {
  SegmentInfo segment;
  uint64_t number = 0;
  int device = 0;
  if (!Device(&device)) return false;
  const JsonMember* address = Find("addr");
  const JsonMember* size = Find("b");
  if (address == nullptr) return Missing("addr");
  if (size == nullptr) return Missing("b");
  if (!Unsigned(*address, &number)) return false;
  segment.address = Address(number);
  if (!Unsigned(*size, &number)) return false;
  segment.total_size = Bytes(number);
  if (const JsonMember* stream = Find("s")) {
    if (!Unsigned(*stream, &number)) return false;
    segment.stream = StreamHandle(number);
  }
  if (const JsonMember* pool = Find("p"); pool && !Pool(*pool, &segment.pool_id)) return false;
  if (const JsonMember* m = Find("large"); m && !Bool(*m, &segment.is_large)) return false;
  if (const JsonMember* m = Find("expandable"); m && !Bool(*m, &segment.is_expandable)) {
    return false;
  }
  if (const JsonMember* m = Find("st"); m && !DefinedStack(*m, &segment.stack)) return false;
  DeviceTrace& trace = builder_.Device(device);
  trace.has_final_state = true;
  trace.final_state.push_back(std::move(segment));
  segment_device_ = device;
  return true;
}

bool FlatJsonlReader::BlockRecord() {
  if (segment_device_ < 0) return FailAt(0, "a record \"seg\" before the first \"blk\"", "none");
  BlockInfo block;
  uint64_t number = 0;
  const JsonMember* size = Find("b");
  if (size == nullptr) return Missing("b");
  if (!Unsigned(*size, &number)) return false;
  block.size = Bytes(number);
  if (const JsonMember* address = Find("addr")) {
    if (!Unsigned(*address, &number)) return false;
    block.address = Address(number);
  }
  if (const JsonMember* requested = Find("req")) {
    if (!Unsigned(*requested, &number)) return false;
    block.requested_size = Bytes(number);
  }
  if (const JsonMember* state = Find("state")) {
    std::string_view name;
    if (!String(*state, &name)) return false;
    size_t i = 0;
    while (i < std::size(kBlockStateNames) && kBlockStateNames[i] != name) ++i;
    if (i == std::size(kBlockStateNames)) return Fail(*state, "a state of a block");
    block.state = static_cast<BlockState>(i);
  }
  if (const JsonMember* id = Find("id")) {
    if (!Below(*id, kNoAllocation, &number)) return false;
    block.id = static_cast<AllocationId>(number);
  }
  if (const JsonMember* m = Find("st"); m && !DefinedStack(*m, &block.stack)) return false;
  builder_.Device(segment_device_).final_state.back().blocks.push_back(block);
  return true;
}

bool FlatJsonlReader::AnnotationRecord() {
  Trace& trace = builder_.trace();
  Annotation annotation;
  std::string_view text;
  int64_t number = 0;
  if (const JsonMember* name = Find("n")) {
    if (!String(*name, &text)) return false;
    annotation.name = trace.strings.Intern(text);
  }
  if (const JsonMember* stage = Find("stage")) {
    if (!String(*stage, &text)) return false;
    annotation.stage = trace.strings.Intern(text);
  }
  if (const JsonMember* device = Find("d")) {
    if (!Signed(*device, &number)) return false;
    annotation.device = static_cast<int>(number);
    if (annotation.device != number) return Fail(*device, "a 32-bit integer");
  }
  if (const JsonMember* time = Find("ts"); time && !Signed(*time, &annotation.time_us)) {
    return false;
  }
  trace.annotations.push_back(annotation);
  return true;
}

bool FlatJsonlReader::DiagnosticRecord() {
  const JsonMember* name = Find("n");
  const JsonMember* count = Find("count");
  if (name == nullptr) return Missing("n");
  if (count == nullptr) return Missing("count");
  std::string_view text;
  uint64_t number = 0;
  if (!String(*name, &text) || !Unsigned(*count, &number)) return false;
  const std::optional<DiagnosticKind> kind = DiagnosticFromName(text);
  if (!kind) return Fail(*name, "a diagnostic");
  std::vector<Diagnostics::Place> places;
  if (const JsonMember* list = Find("places")) {
    std::vector<JsonValue> elements;
    if (!Array(*list, &elements)) return false;
    for (const JsonValue& element : elements) {
      std::vector<JsonValue> pair;
      std::optional<uint64_t> position;
      if (element.type == Type::kArray) ScanJsonArray(element.raw, &pair);
      if (pair.size() == 2 && pair[0].type == Type::kNumber && pair[1].type == Type::kString) {
        position = ParseUint64(pair[0].raw);
      }
      if (!position) return Fail(*list, "pairs of a position and a text");
      places.push_back({*position, std::string(Text(pair[1]))});
    }
  }
  builder_.trace().diagnostics.Restore(*kind, number, std::move(places));
  return true;
}

}  // namespace

bool LooksLikeFlatJsonl(std::string_view head) {
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '{') return false;
  const size_t newline = head.find('\n', begin);
  const std::string_view line = head.substr(begin, newline - begin);
  // The scanner keeps the members before an error, so a cut line is no trouble.
  std::vector<JsonMember> members;
  ScanJsonObject(line, &members);
  for (const JsonMember& member : members) {
    if (member.key == "k" && member.value.type == Type::kString) return true;
  }
  return false;
}

absl::StatusOr<Trace> ReadFlatJsonl(ByteSource& source) {
  FlatJsonlReader reader(source);
  return reader.Read();
}

}  // namespace memreplay
