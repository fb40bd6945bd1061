#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "proto/trace.pb.h"
#include "trace/formats/protobuf/protobuf_format.h"
#include "trace/value/strings.h"
#include "trace/value/trace_builder.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

// Returns the kind of event by its number in files; nullopt if there is none. They have one name.
std::vector<std::optional<EventKind>> KindsInFile() {
  std::vector<std::optional<EventKind>> kinds;
  for (int number = 0; number <= file::Kind_MAX; ++number) {
    const std::string name = file::Kind_Name(static_cast<file::Kind>(number));
    kinds.push_back(EventKindFromName(absl::AsciiStrToLower(name)));
  }
  return kinds;
}

class ProtobufReader {
 public:
  explicit ProtobufReader(ByteSource& source) : source_(source) {}

  absl::StatusOr<Trace> Read() {
    trace_.format = "protobuf";
    if (!Start()) return Error();
    while (!ended_) {
      file::Record record;
      if (!Next(&record) || !Take(record)) return Error();
    }
    record_begin_ = source_.position();
    if (!source_.Peek(1).empty()) {
      Fail("the end of the file after its last record", "more bytes");
      return Error();
    }
    if (absl::Status status = CheckTrace(trace_); !status.ok()) {
      return absl::InvalidArgumentError(status.message());
    }
    return std::move(trace_);
  }

 private:
  // The functions below return false after an error, which is then in error_.

  bool Fail(std::string_view expected, std::string_view found) {
    error_ = absl::InvalidArgumentError(
        StrCat("byte ", record_begin_, ": expected ", expected, ", found ", found));
    return false;
  }
  absl::Status Error() const { return source_.status().ok() ? error_ : source_.status(); }

  bool Start() {
    constexpr size_t kBytes = kProtobufMagic.size() + 4;
    const std::string_view head = source_.Peek(kBytes);
    if (!LooksLikeProtobufTrace(head)) return Fail("a protobuf trace", "something else");
    if (head.size() < kBytes) return Fail("a version", "the end of the file");
    uint32_t version = 0;
    for (int i = 0; i < 4; ++i) {
      version |= static_cast<uint32_t>(static_cast<uint8_t>(head[kProtobufMagic.size() + i]))
                 << (8 * i);
    }
    source_.Skip(kBytes);
    return version == kProtobufVersion ||
           Fail(StrCat("version ", kProtobufVersion), StrCat("version ", version));
  }

  bool Next(file::Record* record) {
    record_begin_ = source_.position();
    const std::string_view head = source_.Peek(5).substr(0, 5);
    size_t length = 0;
    size_t used = 0;
    while (true) {
      if (used == head.size()) {
        return Fail("a record", used == 5 ? "a length over 5 bytes" : "the end of the file");
      }
      const auto byte = static_cast<uint8_t>(head[used]);
      length |= static_cast<size_t>(byte & 0x7f) << (7 * used);
      ++used;
      if (byte < 0x80) break;
    }
    if (length > kMaxRecordBytes) {
      return Fail(StrCat("a record of at most ", kMaxRecordBytes, " bytes"),
                  StrCat("one of ", length));
    }
    const std::string_view bytes = source_.Peek(used + length);
    if (bytes.size() < used + length) {
      return Fail(StrCat("a record of ", length, " bytes"), "the end of the file");
    }
    if (!record->ParseFromArray(bytes.data() + used, static_cast<int>(length))) {
      return Fail("a record of proto/trace.proto", "other bytes");
    }
    source_.Skip(used + length);
    return true;
  }

  bool Take(const file::Record& record) {
    using file::Record;
    if (!has_header_ && record.record_case() != Record::kHeader) {
      return Fail("the header as the first record", "another record");
    }
    switch (record.record_case()) {
      case Record::kHeader: return Header(record.header());
      case Record::kTexts: return Texts(record.texts());
      case Record::kFrames: return Frames(record.frames());
      case Record::kStacks: return Stacks(record.stacks());
      case Record::kDevice: return Device(record.device());
      case Record::kEvents: return Events(record.events());
      case Record::kSegment: return Segment(record.segment());
      case Record::kBlocks: return Blocks(record.blocks());
      case Record::kAnnotation: return Annotate(record.annotation());
      case Record::kNotes: return Notes(record.notes());
      case Record::kDiagnostic: return Diagnostic(record.diagnostic());
      case Record::kEnd:
        ended_ = true;
        return record.end().events() == events_ ||
               Fail(StrCat(record.end().events(), " events before the end"), StrCat(events_));
      case Record::RECORD_NOT_SET: break;
    }
    return Fail("a known record", "an unknown or empty one");
  }

  bool Header(const file::Header& header) {
    if (has_header_) return Fail("one header", "another");
    has_header_ = true;
    trace_.is_program = header.is_program();
    for (const uint64_t handle : header.streams()) {
      trace_.streams.push_back(StreamHandle(handle));
    }
    if (header.pool_first_size() != header.pool_second_size()) {
      return Fail("pool_first and pool_second of the same length", "different lengths");
    }
    for (int i = 0; i < header.pool_first_size(); ++i) {
      trace_.pools.push_back({header.pool_first(i), header.pool_second(i)});
    }
    for (const std::string& name : header.layout()) {
      if (!trace_.layout.Set(name)) {
        return Fail("a fact of the layout", StrCat("'", CutText(name, 40), "'"));
      }
    }
    trace_.layout.pickle_protocol = static_cast<int>(header.pickle_protocol());
    if (header.has_settings()) {
      const file::Settings& from = header.settings();
      RecordedSettings& to = trace_.settings.emplace();
      to.conf = from.conf();
      if (from.has_max_split_size()) to.max_split_size = from.max_split_size();
      if (from.has_garbage_collection_threshold()) {
        to.garbage_collection_threshold = from.garbage_collection_threshold();
      }
      if (from.has_expandable_segments()) to.expandable_segments = from.expandable_segments();
      if (from.has_graph_capture_record_stream_reuse()) {
        to.graph_capture_record_stream_reuse = from.graph_capture_record_stream_reuse();
      }
      if (from.roundup_size_mb_size() != from.roundup_divisions_size()) {
        return Fail("roundup lists of the same length", "different lengths");
      }
      for (int i = 0; i < from.roundup_size_mb_size(); ++i) {
        to.roundup_power2_divisions.push_back({from.roundup_size_mb(i), from.roundup_divisions(i)});
      }
    }
    if (header.has_total_memory()) trace_.total_memory = Bytes(header.total_memory());
    if (header.has_memory_fraction()) trace_.memory_fraction = header.memory_fraction();
    if (header.explicit_completion()) trace_.completion = Completion::kExplicit;
    trace_.program_header = header.program_header();
    trace_.torch_version = header.torch_version();
    trace_.ended = header.ended();
    return true;
  }

  bool Texts(const file::Texts& texts) {
    for (const std::string& text : texts.text()) texts_.push_back(trace_.strings.Intern(text));
    return true;
  }

  bool Frames(const file::Frames& frames) {
    if (frames.filename_size() != frames.name_size() || frames.name_size() != frames.line_size()) {
      return Fail("columns of frames of the same length", "different lengths");
    }
    for (int i = 0; i < frames.name_size(); ++i) {
      Frame frame;
      frame.line = frames.line(i);
      if (!Find(texts_, frames.filename(i), "texts", &frame.filename) ||
          !Find(texts_, frames.name(i), "texts", &frame.name)) {
        return false;
      }
      frames_.push_back(trace_.stacks.InternFrame(frame));
    }
    return true;
  }

  bool Stacks(const file::Stacks& stacks) {
    std::vector<uint32_t> list;
    int at = 0;
    for (const uint32_t depth : stacks.depth()) {
      if (depth > static_cast<uint32_t>(stacks.frame_size() - at)) {
        return Fail("as many frames as the depths say", "fewer");
      }
      list.clear();
      for (uint32_t i = 0; i < depth; ++i) {
        if (!Find(frames_, stacks.frame(at++), "frames", &list.emplace_back())) return false;
      }
      stacks_.push_back(trace_.stacks.InternStack(list));
    }
    return at == stacks.frame_size() || Fail("as many frames as the depths say", "more");
  }

  bool Device(const file::Device& from) {
    if (from.device() > 0x7fffffff) return Fail("a device below 2^31", StrCat(from.device()));
    const int number = static_cast<int>(from.device());
    if (!trace_.devices.empty() && trace_.devices.back().device >= number) {
      return Fail("devices in ascending order", StrCat("device ", number));
    }
    DeviceTrace& device = trace_.devices.emplace_back();
    device.device = number;
    device.has_final_state = from.has_final_state();
    has_times_ = from.has_times();
    return true;
  }

  // Returns whether a column is absent or has the required length.
  template <typename Column>
  bool Fits(const Column& column, int length, std::string_view name) {
    if (column.empty() || column.size() == length) return true;
    return Fail(StrCat("a column ", name, " of ", length, " or none"), StrCat(column.size()));
  }
  // Returns an element of a column; 0 if the column is absent.
  template <typename Column>
  static auto At(const Column& column, int i) {
    return column.empty() ? 0 : column.Get(i);
  }
  // Looks up a text, frame or stack by its number in the file.
  bool Find(const std::vector<uint32_t>& table, uint32_t number, std::string_view what,
            uint32_t* found) {
    if (number >= table.size()) return Fail(StrCat(what, " that came before"), "a higher number");
    *found = table[number];
    return true;
  }

  bool Events(const file::Events& from) {
    if (trace_.devices.empty()) return Fail("a device before its events", "none");
    const int count = from.kind_size();
    if (!Fits(from.pool(), count, "pool") || !Fits(from.id_plus_1(), count, "id") ||
        !Fits(from.address_change(), count, "address") || !Fits(from.size(), count, "size") ||
        !Fits(from.block_size(), count, "block_size") || !Fits(from.stream(), count, "stream") ||
        !Fits(from.text_or_stack(), count, "text_or_stack") ||
        !Fits(from.time_change(), count, "time")) {
      return false;
    }
    DeviceTrace& device = trace_.devices.back();
    uint64_t address = 0;
    uint64_t time = 0;
    if (!has_times_ && !from.time_change().empty()) return Fail("no times", "times");
    for (int i = 0; i < count; ++i) {
      Event event;
      const auto kind = static_cast<size_t>(from.kind(i));  // a negative number becomes a large one
      if (kind >= kinds_.size() || !kinds_[kind]) {
        return Fail("a known kind of event", StrCat("number ", from.kind(i)));
      }
      event.kind = *kinds_[kind];
      const uint32_t pool = At(from.pool(), i);
      if (pool >= trace_.pools.size()) return Fail("a pool of the header", "another");
      event.pool = static_cast<uint16_t>(pool);
      event.id = At(from.id_plus_1(), i) - 1;
      event.address = Address(address += static_cast<uint64_t>(At(from.address_change(), i)));
      event.size = Bytes(At(from.size(), i));
      event.block_size = Bytes(At(from.block_size(), i));
      event.stream = At(from.stream(), i);
      if (event.stream >= trace_.streams.size() && event.stream != 0) {
        return Fail("a stream of the header", StrCat("number ", event.stream));
      }
      const std::vector<uint32_t>& table = HasText(event.kind) ? texts_ : stacks_;
      const uint32_t text_or_stack = At(from.text_or_stack(), i);
      if (text_or_stack >= table.size()) {
        return Fail("texts and stacks that came before", "a higher number");
      }
      event.text_or_stack = table[text_or_stack];
      device.events.push_back(event);
      time += static_cast<uint64_t>(At(from.time_change(), i));
      if (has_times_) device.time_us.push_back(static_cast<int64_t>(time));
    }
    events_ += static_cast<uint64_t>(count);
    return true;
  }

  bool Notes(const file::Notes& from) {
    if (trace_.devices.empty()) return Fail("a device before its notes", "none");
    const int count = from.kind_size();
    if (from.event_size() != count || from.name_size() != count || from.address_size() != count) {
      return Fail("columns of notes of the same length", "different lengths");
    }
    DeviceTrace& device = trace_.devices.back();
    for (int i = 0; i < count; ++i) {
      const auto kind = static_cast<size_t>(from.kind(i));  // a negative number becomes a large one
      if (kind >= kNoteKinds) return Fail("a known kind of note", StrCat("number ", from.kind(i)));
      const uint64_t least = device.notes.empty() ? 0 : device.notes.back().event;
      if (from.event(i) < least || from.event(i) > device.events.size()) {
        return Fail(StrCat("a note at event ", least, " to ", device.events.size()),
                    StrCat("one at ", from.event(i)));
      }
      uint32_t name = kNoText;
      if (!Find(texts_, from.name(i), "texts", &name)) return false;
      device.notes.push_back(
          {static_cast<NoteKind>(kind), name, from.event(i), Address(from.address(i))});
    }
    return true;
  }

  bool Segment(const file::Segment& from) {
    if (trace_.devices.empty() || !trace_.devices.back().has_final_state) {
      return Fail("a device with a final state before its segments", "none");
    }
    SegmentInfo& segment = trace_.devices.back().final_state.emplace_back();
    segment = {Address(from.address()),
               Bytes(from.total_size()),
               StreamHandle(from.stream()),
               PoolId{from.pool_first(), from.pool_second()},
               from.is_large(),
               from.is_expandable(),
               kNoStack,
               {}};
    return Find(stacks_, from.stack(), "stacks", &segment.stack);
  }

  bool Blocks(const file::Blocks& from) {
    if (trace_.devices.empty() || trace_.devices.back().final_state.empty()) {
      return Fail("a segment before its blocks", "none");
    }
    const int count = from.size_size();
    if (!Fits(from.address_change(), count, "address") ||
        !Fits(from.requested_size(), count, "requested_size") ||
        !Fits(from.state(), count, "state") || !Fits(from.id_plus_1(), count, "id") ||
        !Fits(from.stack(), count, "stack")) {
      return false;
    }
    std::vector<BlockInfo>& blocks = trace_.devices.back().final_state.back().blocks;
    uint64_t address = 0;
    for (int i = 0; i < count; ++i) {
      BlockInfo block;
      block.size = Bytes(from.size(i));
      block.address = Address(address += static_cast<uint64_t>(At(from.address_change(), i)));
      block.requested_size = Bytes(At(from.requested_size(), i));
      const uint32_t state = At(from.state(), i);
      if (state > static_cast<uint32_t>(BlockState::kInactive)) {
        return Fail("states of blocks from 0 to 2", StrCat(state));
      }
      block.state = static_cast<BlockState>(state);
      block.id = At(from.id_plus_1(), i) - 1;
      if (!Find(stacks_, At(from.stack(), i), "stacks", &block.stack)) return false;
      blocks.push_back(block);
    }
    return true;
  }

  bool Annotate(const file::Annotation& from) {
    Annotation& annotation = trace_.annotations.emplace_back();
    annotation.device = from.device();
    annotation.time_us = from.time_us();
    return Find(texts_, from.name(), "texts", &annotation.name) &&
           Find(texts_, from.stage(), "texts", &annotation.stage);
  }

  bool Diagnostic(const file::Diagnostic& from) {
    const std::optional<DiagnosticKind> kind = DiagnosticFromName(from.name());
    if (!kind) return Fail("a diagnostic", StrCat("'", CutText(from.name(), 40), "'"));
    if (from.position_size() != from.detail_size()) {
      return Fail("positions and details of the same length", "different lengths");
    }
    std::vector<Diagnostics::Place> places;
    for (int i = 0; i < from.position_size(); ++i) {
      places.push_back({from.position(i), from.detail(i)});
    }
    trace_.diagnostics.Restore(*kind, from.count(), std::move(places));
    return true;
  }

  ByteSource& source_;
  Trace trace_;
  absl::Status error_;
  uint64_t record_begin_ = 0;
  bool has_header_ = false;
  bool has_times_ = false;
  bool ended_ = false;
  uint64_t events_ = 0;
  const std::vector<std::optional<EventKind>> kinds_ = KindsInFile();
  // Indexes in the tables by number in the file.
  std::vector<uint32_t> texts_ = {kNoText};
  std::vector<uint32_t> frames_;
  std::vector<uint32_t> stacks_ = {kNoStack};
};

}  // namespace

bool LooksLikeProtobufTrace(std::string_view head) {
  return head.substr(0, kProtobufMagic.size()) == kProtobufMagic;
}

absl::StatusOr<Trace> ReadProtobufTrace(ByteSource& source) {
  return ProtobufReader(source).Read();
}

}  // namespace memreplay
