#include "trace/formats/flat/flat_header.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/formats/flat/flat_records.h"
#include "trace/value/layout_fields.h"
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
      bool known = false;
      for (const LayoutField& field : kLayoutFields) {
        if (name.type != Type::kString || name.raw != field.name) continue;
        trace.layout.*field.field = true;
        known = true;
      }
      if (!known) return record.Fail(name.raw, "a fact of the layout", JsonRecord::Describe(name));
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

bool ReadFlatHeader(JsonRecord& record, TraceBuilder& builder, int* declared_devices) {
  Trace& trace = builder.trace();
  std::string_view text;
  uint64_t number = 0;
  const JsonMember* format = record.Find("format");
  if (format == nullptr) return record.Missing("format", "the header");
  if (!record.String(*format, &text)) return false;
  if (text != kFlatFormat) return record.Fail(*format, StrCat("\"", kFlatFormat, "\""));
  const JsonMember* version = record.Find("version");
  if (version == nullptr) return record.Missing("version", "the header");
  if (!record.Unsigned(*version, &number)) return false;
  if (number != kFlatVersion) return record.Fail(*version, StrCat(kFlatVersion));
  if (const JsonMember* unit = record.Find("unit")) {
    if (!record.String(*unit, &text)) return false;
    if (text != "B") return record.Fail(*unit, "\"B\"");
  }
  bool is_recorded = !trace.is_program;
  if (!record.Optional("recorded", &is_recorded)) return false;
  trace.is_program = !is_recorded;
  if (const JsonMember* devices = record.Find("devices")) {
    if (!record.Below(*devices, kMaxDeclaredDevices + 1, &number)) return false;
    *declared_devices = static_cast<int>(std::max<uint64_t>(number, 1));
  }
  if (!ReadTables(record, builder)) return false;
  if (!record.Optional("torch", &trace.torch_version) || !record.Optional("ended", &trace.ended) ||
      !record.Optional("total", &trace.total_memory) ||
      !record.Optional("fraction", &trace.memory_fraction)) {
    return false;
  }
  if (const JsonMember* completion = record.Find("completion")) {
    if (!record.String(*completion, &text)) return false;
    if (text != "at_once" && text != "explicit") {
      return record.Fail(*completion, "\"at_once\" or \"explicit\"");
    }
    trace.completion = text == "explicit" ? Completion::kExplicit : Completion::kAtOnce;
  }
  std::optional<std::string> conf;
  if (!record.Optional("conf", &conf)) return false;
  if (conf) trace.settings.emplace().conf = *conf;
  if (const JsonMember* settings = record.Find("settings");
      settings != nullptr && !ReadSettings(*settings, record, trace)) {
    return false;
  }
  if (!ReadLayout(record, trace)) return false;
  // Members on the origin of the schedule are kept unchanged.
  for (const std::string_view key : {"config", "seed", "meta"}) {
    const JsonMember* member = record.Find(key);
    if (member == nullptr) continue;
    std::string& kept = trace.program_header;
    StrAppend(&kept, kept.empty() ? "{\"" : ",\"", key, "\":");
    const bool quoted = member->value.type == Type::kString;
    StrAppend(&kept, quoted ? "\"" : "", member->value.raw, quoted ? "\"" : "");
  }
  if (!trace.program_header.empty()) trace.program_header += "}";
  return true;
}

}  // namespace memreplay
