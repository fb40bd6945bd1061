#include "tests/trace/support/trace_dump.h"

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "trace/value/strings.h"
#include "trace/value/trace.h"

namespace memreplay::testing {
namespace {

class Dumper {
 public:
  explicit Dumper(const Trace& trace) : trace_(trace) {}

  std::string Dump() {
    out_ << "is_program " << trace_.is_program << "\nstreams";
    for (const StreamHandle stream : trace_.streams) out_ << ' ' << stream.value();
    out_ << "\npools";
    for (const PoolId pool : trace_.pools) out_ << ' ' << pool.first << ',' << pool.second;
    out_ << "\nlayout " << trace_.layout.pickle_protocol;
    for (const LayoutField& field : kLayoutFields) {
      if (trace_.layout.*field.field) out_ << ' ' << field.name;
    }
    out_ << "\nprogram_header " << trace_.program_header << "\n";
    if (!trace_.torch_version.empty()) out_ << "torch " << trace_.torch_version << "\n";
    if (!trace_.ended.empty()) out_ << "ended " << trace_.ended << "\n";
    if (trace_.total_memory) out_ << "total " << trace_.total_memory->value() << "\n";
    if (trace_.memory_fraction)
      out_ << "fraction " << std::hexfloat << *trace_.memory_fraction << "\n";
    out_ << "explicit " << (trace_.completion == Completion::kExplicit) << "\n";
    if (trace_.settings) Settings(*trace_.settings);
    for (const DeviceTrace& device : trace_.devices) Device(device);
    for (const Annotation& a : trace_.annotations) {
      out_ << "annotation " << Text(a.name) << ' ' << Text(a.stage) << ' ' << a.device << ' '
           << a.time_us << "\n";
    }
    for (int i = 0; i < static_cast<int>(DiagnosticKind::kCount); ++i) {
      const auto kind = static_cast<DiagnosticKind>(i);
      if (trace_.diagnostics.count(kind) == 0) continue;
      out_ << "diagnostic " << DescribeDiagnostic(kind).name << ' '
           << trace_.diagnostics.count(kind);
      for (const auto& place : trace_.diagnostics.places(kind)) {
        out_ << " (" << place.position << ' ' << place.detail << ')';
      }
      out_ << "\n";
    }
    return out_.str();
  }

 private:
  std::string Text(uint32_t index) { return StrCat("<", trace_.strings[index], ">"); }

  std::string Stack(uint32_t index) {
    std::string text = "[";
    for (const uint32_t i : trace_.stacks[index]) {
      const Frame& frame = trace_.stacks.frame(i);
      StrAppend(&text, Text(frame.filename), ":", frame.line, ":", Text(frame.name), " ");
    }
    return text + "]";
  }

  void Settings(const RecordedSettings& settings) {
    out_ << "settings <" << settings.conf << ">";
    if (settings.max_split_size) out_ << " max_split " << *settings.max_split_size;
    if (settings.garbage_collection_threshold) {
      out_ << " gc " << std::hexfloat << *settings.garbage_collection_threshold;
    }
    if (settings.expandable_segments) out_ << " expandable " << *settings.expandable_segments;
    if (settings.graph_capture_record_stream_reuse) {
      out_ << " reuse " << *settings.graph_capture_record_stream_reuse;
    }
    for (const auto& [a, b] : settings.roundup_power2_divisions) out_ << ' ' << a << ':' << b;
    out_ << "\n";
  }

  void Device(const DeviceTrace& device) {
    out_ << "device " << device.device << " final " << device.has_final_state << "\n";
    for (const MemoryNote& note : device.notes) {
      out_ << "note " << kNoteNames[static_cast<size_t>(note.kind)] << ' ' << Text(note.name) << ' '
           << note.event << ' ' << note.address.value() << "\n";
    }
    for (size_t i = 0; i < device.events.size(); ++i) {
      const Event& e = device.events[i];
      out_ << EventKindName(e.kind) << " id=" << e.id << " address=" << e.address.value()
           << " size=" << e.size.value() << " block=" << e.block_size.value() << " stream="
           << (e.stream < trace_.streams.size() ? StrCat(trace_.streams[e.stream].value())
                                                : StrCat("#", e.stream))
           << " pool=" << e.pool << ' '
           << (HasText(e.kind) ? Text(e.text_or_stack) : Stack(e.text_or_stack));
      if (!device.time_us.empty()) out_ << " time=" << device.time_us[i];
      out_ << "\n";
    }
    for (const SegmentInfo& s : device.final_state) {
      out_ << "segment " << s.address.value() << ' ' << s.total_size.value() << ' '
           << s.stream.value() << ' ' << s.pool_id.first << ',' << s.pool_id.second << ' '
           << s.is_large << s.is_expandable << ' ' << Stack(s.stack) << "\n";
      for (const BlockInfo& b : s.blocks) {
        out_ << "  block " << b.address.value() << ' ' << b.size.value() << ' '
             << b.requested_size.value() << ' ' << static_cast<int>(b.state) << ' ' << b.id << ' '
             << Stack(b.stack) << "\n";
      }
    }
  }

  const Trace& trace_;
  std::ostringstream out_;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Trace Make() {
    trace_.format = "random";
    trace_.is_program = Coin();
    uint64_t handle = Coin() ? 0 : Number();
    for (uint64_t n = 1 + Below(4); n > 0; --n) {
      trace_.streams.push_back(StreamHandle(handle));
      const uint64_t next = handle + 1 + (Coin() ? 0 : Below(uint64_t{1} << 40));
      if (next <= handle) break;
      handle = next;
    }
    for (uint64_t n = Below(4); n > 0; --n) {
      trace_.pools.push_back(Coin() ? PoolId{n, 0} : PoolId{0, Number() / 8 * 8 + n});
    }
    for (const LayoutField& field : kLayoutFields) trace_.layout.*field.field = Coin();
    trace_.layout.pickle_protocol = static_cast<int>(Below(6));
    if (Coin()) {
      RecordedSettings& settings = trace_.settings.emplace();
      settings.conf = Word();
      if (Coin()) settings.max_split_size = static_cast<int64_t>(Number());
      if (Coin()) settings.garbage_collection_threshold = Fraction();
      if (Coin()) settings.expandable_segments = Coin();
      if (Coin()) settings.graph_capture_record_stream_reuse = Coin();
      for (uint64_t n = Below(4); n > 0; --n) {
        settings.roundup_power2_divisions.push_back({Number(), Number()});
      }
    }
    if (Coin()) trace_.torch_version = "2.6.0+cu124";
    if (Coin()) trace_.ended = "ValueError: \"too\" large";
    if (Coin()) trace_.total_memory = Bytes(Number());
    if (Coin()) trace_.memory_fraction = Fraction();
    if (Coin()) trace_.completion = Completion::kExplicit;
    if (Coin())
      trace_.program_header = "{\"config\":{\"B\": 12, \"a\":[1,{\"\\u00e9\":null}]},\"seed\":0}";
    int device = static_cast<int>(Below(2));
    for (uint64_t n = Below(4); n > 0; --n) {
      AddDevice(device);
      device += static_cast<int>(1 + Below(3));
    }
    for (uint64_t n = Below(4); n > 0; --n) {
      trace_.annotations.push_back(
          {String(), String(), static_cast<int>(Number()), static_cast<int64_t>(Number())});
    }
    for (uint64_t n = Below(4); n > 0; --n) {
      const auto kind =
          static_cast<DiagnosticKind>(Below(static_cast<uint64_t>(DiagnosticKind::kCount)));
      trace_.diagnostics.Restore(kind, 1 + Below(100), {{Number(), Word()}});
    }
    return std::move(trace_);
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Coin() { return Below(2) == 0; }
  // Small, large, and every bit length.
  uint64_t Number() { return random_() >> Below(64); }
  double Fraction() { return static_cast<double>(Number()) / static_cast<double>(Number() | 1); }

  std::string Word() {
    static constexpr std::string_view kPieces[] = {
        "a",    "forward",          " ",   "\"",  "\\", "\n", "\t", "=", "#", "\x01", "é",
        "日本", "\xf0\x9f\x98\x80", "0.5", ".py", "/",  "'",  ":",  ",", "{", "\r",   "\x7f",
        "conf"};
    std::string word;
    for (uint64_t n = Below(6); n > 0; --n) word += kPieces[Below(std::size(kPieces))];
    return word;
  }
  uint32_t String() { return trace_.strings.Intern(Word()); }
  uint32_t Stack() {
    std::vector<uint32_t> frames;
    for (uint64_t n = Below(4); n > 0; --n) {
      const auto line = static_cast<uint32_t>(Coin() ? 0 : Number());
      frames.push_back(trace_.stacks.InternFrame({String(), String(), line}));
    }
    if (Below(8) == 0) {
      // What the flat format makes of dt, sh and saved, right and wrong.
      const std::string_view kTexts[] = {"\"dt\":\"f32\",\"sh\":[2, 3]", "\"saved\":true", "x",
                                         "\"sh\":[2],\"dt\":\"f32\""};
      frames = {trace_.stacks.InternFrame({String(), String(), 0}),
                trace_.stacks.InternFrame({trace_.strings.Intern("memsched:tensor"),
                                           trace_.strings.Intern(kTexts[Below(4)]), 0})};
    }
    return trace_.stacks.InternStack(frames);
  }

  Event MakeEvent() {
    Event event;
    event.kind = static_cast<EventKind>(Below(static_cast<uint64_t>(EventKind::kSnapshot) + 1));
    if (Coin()) event.pool = static_cast<uint16_t>(Below(trace_.pools.size()));
    if (Coin()) event.id = static_cast<AllocationId>(Below(kNoAllocation));
    if (Coin()) event.address = Address(Number());
    if (Coin()) event.size = Bytes(event.kind == EventKind::kMark ? Below(6) : Number());
    if (Below(4) == 0) event.block_size = Bytes(Number());
    if (Coin()) event.stream = static_cast<uint32_t>(Below(trace_.streams.size()));
    if (Coin()) event.text_or_stack = HasText(event.kind) ? String() : Stack();
    return event;
  }

  void AddDevice(int number) {
    DeviceTrace device;
    device.device = number;
    const bool has_times = Coin();
    for (uint64_t n = Below(30); n > 0; --n) {
      device.events.push_back(MakeEvent());
      if (has_times) device.time_us.push_back(static_cast<int64_t>(Number()) * (Coin() ? 1 : -1));
    }
    uint64_t event = 0;
    for (uint64_t n = Below(5); n > 0; --n) {
      event += Below(device.events.size() + 1 - event);
      device.notes.push_back({static_cast<NoteKind>(Below(kNoteKinds)), String(), event,
                              Address(Coin() ? Number() : 0)});
    }
    device.has_final_state = Coin();
    for (uint64_t n = device.has_final_state ? Below(4) : 0; n > 0; --n) {
      SegmentInfo segment{Address(Number()),
                          Bytes(Number()),
                          StreamHandle(Number()),
                          PoolId{Below(3), Below(3)},
                          Coin(),
                          Coin(),
                          Coin() ? Stack() : 0,
                          {}};
      for (uint64_t m = Below(5); m > 0; --m) {
        BlockInfo block;
        block.address = Address(Number());
        block.size = Bytes(Number());
        block.requested_size = Bytes(Number());
        block.state = static_cast<BlockState>(Below(3));
        if (Coin()) block.id = static_cast<AllocationId>(Below(kNoAllocation));
        if (Coin()) block.stack = Stack();
        segment.blocks.push_back(block);
      }
      device.final_state.push_back(std::move(segment));
    }
    trace_.devices.push_back(std::move(device));
  }

  std::mt19937_64 random_;
  Trace trace_;
};

}  // namespace

std::string DumpTrace(const Trace& trace) { return Dumper(trace).Dump(); }

Trace RandomTrace(uint64_t seed) { return Generator(seed).Make(); }

Trace SnapshotTrace() {
  Trace trace;
  trace.format = "torch_snapshot_pickle";
  trace.streams = {StreamHandle(0), StreamHandle(0x55d0c0ffee40)};
  trace.pools.push_back({0, 1});
  LayoutFacts& layout = trace.layout;
  for (const LayoutField& field : kLayoutFields) layout.*field.field = true;
  layout.has_block_history = false;
  layout.has_event_pool_id = false;
  layout.pickle_protocol = 4;
  RecordedSettings& settings = trace.settings.emplace();
  settings.conf = "max_split_size_mb:64";
  settings.max_split_size = 64 << 20;
  settings.garbage_collection_threshold = 0.8;
  settings.expandable_segments = false;
  settings.graph_capture_record_stream_reuse = false;
  for (uint64_t mb = 1; mb <= 32768; mb *= 2) settings.roundup_power2_divisions.push_back({mb, 0});
  const auto frame = [&](std::string_view file, std::string_view name, uint32_t line) {
    return trace.stacks.InternFrame({trace.strings.Intern(file), trace.strings.Intern(name), line});
  };
  const uint32_t forward = frame("model.py", "forward", 12);
  const uint32_t train = frame("train.py", "step", 300);
  const uint32_t kernel = frame("??", "c10::Allocator \"x\" é", 70000);
  const uint32_t a = trace.stacks.InternStack({forward, train});
  const uint32_t b = trace.stacks.InternStack({kernel, forward, train});
  for (const int number : {0, 1}) {
    DeviceTrace device;
    device.device = number;
    int64_t time = 1700000000000000 + number;
    const auto add = [&](EventKind kind, uint64_t address, uint64_t size, uint32_t stream,
                         uint32_t stack) {
      Event event;
      event.kind = kind;
      event.address = Address(address);
      event.size = Bytes(size);
      event.stream = stream;
      event.text_or_stack = stack;
      device.events.push_back(event);
      device.time_us.push_back(time += 3);
    };
    const uint64_t base = 0x7f0000000000;
    add(EventKind::kSegmentAlloc, base, 2 << 20, 0, a);
    add(EventKind::kAlloc, base, 1000, 0, a);
    add(EventKind::kAlloc, base + 1024, 70000, 0, b);
    add(EventKind::kFree, base, 1000, 0, kNoStack);
    add(EventKind::kFreeCompleted, base, 1000, 0, kNoStack);
    add(EventKind::kSegmentMap, base + (1 << 30), 20 << 20, 1, b);
    add(EventKind::kAlloc, base + (1 << 30), 5000000000, 1, b);
    add(EventKind::kOom, 264634368, 402653184, 0, a);
    add(EventKind::kSnapshot, 0, 70144, 0, kNoStack);
    device.notes = {
        {NoteKind::kForward, trace.strings.Intern("GPT"), 0, Address()},
        {NoteKind::kParameter, trace.strings.Intern("h.0.weight é"), 3, Address(base)},
        {NoteKind::kEnd, kNoText, 4, Address()},
        {NoteKind::kLoss, kNoText, 7, Address(base + 1024)},
    };
    device.has_final_state = true;
    SegmentInfo segment{Address(base), Bytes(2 << 20), StreamHandle(0), {}, false, false, a, {}};
    BlockInfo block;
    block.address = Address(base);
    block.size = Bytes(1024);
    segment.blocks.push_back(block);
    block = {Address(base + 1024), Bytes(70144), Bytes(70000), BlockState::kAllocated};
    block.stack = b;
    segment.blocks.push_back(block);
    block = {Address(base + 71168), Bytes((2 << 20) - 71168), Bytes(0), BlockState::kInactive};
    segment.blocks.push_back(block);
    device.final_state.push_back(segment);
    SegmentInfo mapped{Address(base + (1 << 30)),
                       Bytes(20 << 20),
                       trace.streams[1],
                       {0, 1},
                       true,
                       true,
                       kNoStack,
                       {}};
    block = {Address(base + (1 << 30)), Bytes(20 << 20), Bytes(5000000000),
             BlockState::kPendingFree};
    mapped.blocks.push_back(block);
    device.final_state.push_back(mapped);
    trace.devices.push_back(std::move(device));
  }
  trace.annotations.push_back(
      {trace.strings.Intern("compile é"), trace.strings.Intern("START"), 0, 1700000000000001});
  trace.annotations.push_back(
      {trace.strings.Intern("compile é"), trace.strings.Intern("END"), 0, 1700000000000009});
  return trace;
}

std::string ReadShared(const std::string& path) {
  const char* root = std::getenv("MEMREPLAY_SHARED");
  std::ifstream in(StrCat(root != nullptr ? root : "../shared", "/", path), std::ios::binary);
  std::ostringstream bytes;
  if (in) bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace memreplay::testing
