#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/formats/flat/flat_records.h"
#include "trace/formats/flat/flat_tables.h"
#include "trace/formats/flat/json_record.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"

namespace memreplay {
namespace {

using Type = JsonValue::Type;

constexpr size_t kMaxLine = size_t{64} << 20;

// Returns the index in kFlatRecords of a name. One- and two-letter names use a small table; longer
// names are searched.
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

bool IsEffect(const FlatRecord& row) { return row.k == "fx"; }

bool IsReset(EventKind kind) {
  return kind == EventKind::kResetPeak || kind == EventKind::kResetAccumulated;
}

// Whether a record names an allocation that another one made.
bool UsesHandle(const FlatRecord& row) {
  return row.kind == EventKind::kFree || row.kind == EventKind::kRecordStream ||
         (row.kind == EventKind::kMark && row.mark == MarkKind::kRetag);
}

class FlatJsonlReader {
 public:
  explicit FlatJsonlReader(ByteSource& source) : source_(source), builder_("flat_jsonl") {
    builder_.trace().is_program = true;
  }

  absl::StatusOr<Trace> Read() {
    std::string_view line;
    for (uint64_t number = 1;; ++number) {
      const uint64_t begin = source_.position();
      if (!source_.ReadLine(&line, kMaxLine)) break;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (!record_.Scan(line, begin, number) || !Record()) return record_.TakeError();
    }
    RETURN_IF_ERROR(source_.status());
    return std::move(builder_).Finish();
  }

 private:
  // Member functions that return bool return false after an error, which is then in record_.

  bool Record() {
    if (!record_.ReadKind()) return false;
    const bool is_first = std::exchange(is_first_, false);
    if (const FlatRecord* row = FindRecord(record_.kind())) {
      if (!EventRecord(*row)) return false;
    } else if (record_.kind() == "h") {
      if (!is_first) {
        return record_.Fail(record_.Find("k")->value.raw, "the header \"h\" on the first line only",
                            "another");
      }
      if (!tables_.Header(&declared_devices_)) return false;
    } else if (record_.kind() == "fx") {
      if (!EffectRecord()) return false;
    } else if (!tables_.Read()) {
      return false;
    }
    return record_.Finish(&builder_.trace().diagnostics);
  }

  bool EventRecord(const FlatRecord& row) {
    Event event;
    event.kind = row.kind;
    event.stream = TraceBuilder::kNoStream;
    if (row.kind == EventKind::kMark) event.set_mark(row.mark);
    int device = 0;
    return Identity(row, &event) && SizeOrCount(row, &event) && Place(row, &event, &device) &&
           TextOrStack(row, &event) && AddEvent(row, event, device);
  }

  // Reads the handle in a schedule; address and number in a recorded trace.
  bool Identity(const FlatRecord& row, Event* event) {
    const bool is_program = builder_.trace().is_program, is_numbered = row.handle == "ev";
    uint64_t number = 0;
    const auto read_id = [&](const JsonMember& member) {
      if (!record_.Below(member, kNoAllocation, &number)) return false;
      event->id = static_cast<AllocationId>(number);
      return true;
    };
    if (is_program || is_numbered) {
      const bool has_handle = record_.Find(row.handle) != nullptr;
      if (!has_handle && Requires(row, 'i')) return record_.Missing(row.handle);
      if (!record_.Optional(row.handle, &event->address)) return false;
    } else {
      const JsonMember* handle = record_.Find(row.handle);
      if (handle != nullptr && !read_id(*handle)) return false;
      if (!record_.Optional("addr", &event->address)) return false;
    }
    const std::string_view id_key = is_program ? "aid" : "id";
    const JsonMember* id = id_key == row.handle ? nullptr : record_.Find(id_key);
    return id == nullptr || read_id(*id);
  }

  bool SizeOrCount(const FlatRecord& row, Event* event) {
    uint64_t number = 0;
    if (row.kind == EventKind::kFailNext) {
      if (!record_.Required("n", &number)) return false;
      event->set_fail_count(number);
    } else if (row.kind == EventKind::kPoolCreate && !IsEffect(row)) {
      uint64_t flags = 0;
      for (const auto& [name, flag] :
           {std::pair("oom", kPoolUseOnOom), {"nosplit", kPoolNoSplit}}) {
        const JsonMember* member = record_.Find(name);
        if (member == nullptr) continue;
        if (!record_.Below(*member, 2, &number)) return false;
        if (number == 1) flags |= flag;
      }
      event->set_pool_flags(flags);
    } else if (row.kind != EventKind::kMark || IsEffect(row)) {
      if (!(Requires(row, 'b') ? record_.Required("b", &event->size)
                               : record_.Optional("b", &event->size))) {
        return false;
      }
    }
    return record_.Optional("bs", &event->block_size);
  }

  // Reads device, stream and pool.
  bool Place(const FlatRecord& row, Event* event, int* device) {
    Trace& trace = builder_.trace();
    if (!tables_.Device(device)) return false;
    const JsonMember* stream = record_.Find("s");
    if (stream != nullptr && !Stream(*stream, &event->stream)) return false;
    if (stream == nullptr && Requires(row, 's')) return record_.Missing("s");
    if (trace.is_program && UsesHandle(row) && !homes_.empty()) {
      const auto home = homes_.find(event->address.value());
      if (home != homes_.end()) {
        if (record_.Find("d") == nullptr) *device = home->second.device;
        if (row.kind == EventKind::kFree) {
          if (stream == nullptr) event->stream = home->second.stream;
          homes_.erase(home);
        }
      }
    }
    if (event->stream == TraceBuilder::kNoStream && NamesStream(*event)) {
      event->stream = builder_.StreamNumber(StreamHandle(0));
    }
    if (trace.is_program && row.kind == EventKind::kAlloc) {
      const bool is_home = *device == 0 && trace.streams[event->stream].value() == 0;
      if (!is_home) {
        homes_[event->address.value()] = {*device, event->stream};
      } else if (!homes_.empty()) {
        homes_.erase(event->address.value());
      }
    }
    if (const JsonMember* member = record_.Find("p")) {
      PoolId id;
      if (!record_.Pool(*member, &id)) return false;
      const std::optional<uint16_t> pool = builder_.PoolIndex(id);
      if (!pool) return record_.Fail(*member, "at most 65536 pools");
      event->pool = *pool;
    } else if (Requires(row, 'p')) {
      return record_.Missing("p");
    }
    return true;
  }

  bool TextOrStack(const FlatRecord& row, Event* event) {
    if (!row.text.empty()) {
      if (const JsonMember* member = record_.Find(row.text)) {
        std::string_view text;
        if (row.kind == EventKind::kFraction && member->value.type == Type::kNumber) {
          text = member->value.raw;
        } else if (!record_.String(*member, &text)) {
          return false;
        }
        event->text_or_stack = builder_.trace().strings.Intern(text);
      } else if (Requires(row, 't')) {
        return record_.Missing(row.text);
      }
    } else if (IsReset(row.kind) && !IsEffect(row)) {
      std::string_view text;
      if (!record_.Required("n", &text)) return false;
      const std::optional<EventKind> kind = EventKindFromName(text);
      if (!kind || !IsReset(*kind)) {
        return record_.Fail(*record_.Find("n"), "\"reset_peak\" or \"reset_accumulated\"");
      }
      event->kind = *kind;
    } else if (row.has_label && !Label(event)) {
      return false;
    }
    return HasText(row.kind) || tables_.DefinedStack(&event->text_or_stack);
  }

  // Reads the time, and adds the event to the devices that it concerns.
  bool AddEvent(const FlatRecord& row, const Event& event, int device) {
    std::optional<int64_t> time;
    if (const JsonMember* ts = record_.Find("ts")) {
      if (!record_.Signed(*ts, &time.emplace())) return false;
    } else if (const JsonMember* dt = record_.Find("dt_us")) {
      uint64_t passed = 0;
      if (!record_.Below(*dt, uint64_t{1} << 62, &passed)) return false;
      time = static_cast<int64_t>(static_cast<uint64_t>(builder_.clock(device)) + passed);
    }
    const bool concerns_all = row.kind == EventKind::kEmptyCache || IsReset(row.kind) ||
                              row.kind == EventKind::kSettings || row.kind == EventKind::kMark;
    const bool repeat =
        concerns_all && record_.Find("d") == nullptr && !UsesHandle(row) && declared_devices_ > 1;
    for (int d = repeat ? 0 : device; d < (repeat ? declared_devices_ : device + 1); ++d) {
      if (time) {
        builder_.AddAt(d, event, *time);
      } else {
        builder_.Add(d, event);
      }
    }
    return true;
  }

  bool Requires(const FlatRecord& row, char what) {
    return builder_.trace().is_program && row.required.find(what) != std::string_view::npos;
  }

  bool EffectRecord() {
    std::string_view name;
    if (!record_.Required("a", &name)) return false;
    const std::optional<EventKind> kind = EventKindFromName(name);
    if (!kind) return record_.Fail(*record_.Find("a"), "an action");
    FlatRecord row{"fx", *kind, {}, "", "id", "", true};
    if (HasText(*kind)) {
      row.text = "n";
      row.has_label = false;
    }
    return EventRecord(row);
  }

  // Reads the stack that t and n, or st, name.
  bool Label(Event* event) {
    StringTable& strings = builder_.trace().strings;
    StackTable& stacks = builder_.trace().stacks;
    std::string_view tag;
    std::string_view name;
    if (!record_.Optional("t", &tag) || !record_.Optional("n", &name)) return false;
    std::string tensor;
    for (const std::string_view key : {"dt", "sh", "saved"}) {
      const JsonMember* member = record_.size() > 3 ? record_.Find(key) : nullptr;
      if (member == nullptr) continue;
      StrAppend(&tensor, tensor.empty() ? "\"" : ",\"", key, "\":", member->value.text());
    }
    if (tag.empty() && name.empty() && tensor.empty()) return true;
    uint32_t frames[2];
    size_t count = 0;
    frames[count++] = stacks.InternFrame({strings.Intern(tag), strings.Intern(name), 0});
    if (!tensor.empty()) {
      frames[count++] =
          stacks.InternFrame({strings.Intern(kTensorFrame), strings.Intern(tensor), 0});
    }
    event->text_or_stack = stacks.InternStack(absl::MakeConstSpan(frames, count));
    return true;
  }

  bool Stream(const JsonMember& member, uint32_t* stream) {
    uint64_t handle = 0;
    if (!record_.Unsigned(member, &handle)) return false;
    *stream = builder_.StreamNumber(StreamHandle(handle));
    return *stream != TraceBuilder::kNoStream ||
           record_.Fail(member, StrCat("at most ", TraceBuilder::kMaxStreams, " streams"));
  }

  ByteSource& source_;
  TraceBuilder builder_;
  JsonRecord record_;
  FlatTables tables_{record_, builder_};
  bool is_first_ = true;
  int declared_devices_ = 1;
  // The place of a live handle that was not allocated on device 0 and stream 0; a free or use of
  // the handle defaults to it.
  struct Home {
    int device;
    uint32_t stream;
  };
  absl::flat_hash_map<uint64_t, Home> homes_;
};

}  // namespace

bool LooksLikeFlatJsonl(std::string_view head) {
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || head[begin] != '{') return false;
  const size_t newline = head.find('\n', begin);
  const std::string_view line = head.substr(begin, newline - begin);
  // The scanner keeps the members before an error, so a truncated line is usable.
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
