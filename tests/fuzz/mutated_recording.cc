#include "tests/fuzz/mutated_recording.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "tests/sim/support/made_recording.h"
#include "trace/bytes/byte_sink.h"
#include "trace/formats/write_trace.h"

namespace memreplay::fuzz {
namespace {

// The choices that a byte string makes, from its front; they are zero once it is used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint64_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  uint64_t Word() { return Byte() | Byte() << 8; }
  uint64_t Below(uint64_t n) { return Byte() % n; }

 private:
  std::string_view bytes_;
};

struct Base {
  const char* torch;
  const char* conf;
  uint64_t capacity_mib;
  uint32_t streams;
  uint32_t pools;
  bool late_frees;
  bool few_sizes;
  bool is_program;
};
constexpr Base kBases[] = {
    {"2.11", "", 1 << 16, 1, 0, false, false, false},
    {"2.6", "", 1 << 16, 3, 0, true, false, false},
    {"2.11", "expandable_segments:True", 1 << 16, 2, 0, false, false, false},
    {"2.3", "max_split_size_mb:40,garbage_collection_threshold:0.6", 2048, 2, 0, true, false,
     false},
    {"2.11", "", 256, 1, 0, false, false, false},
    {"2.13", "", 1 << 16, 2, 3, true, true, false},
    {"2.15", "roundup_power2_divisions:4", 1024, 2, 2, false, true, false},
    {"2.1", "", 1 << 16, 1, 0, true, false, false},
    {"2.11", "", 1 << 16, 3, 0, true, false, true},
    {"2.6", "expandable_segments:True", 512, 2, 2, false, false, true},
};

// A few places that allocate, in turn.
void AddStacks(Trace& trace, std::vector<Event>& events) {
  std::vector<uint32_t> stacks;
  for (uint32_t line = 1; line <= 7; ++line) {
    Frame frame;
    frame.filename = trace.strings.Intern("train.py");
    frame.name = trace.strings.Intern("step");
    frame.line = line;
    const uint32_t frames[] = {trace.stacks.InternFrame(frame)};
    stacks.push_back(trace.stacks.InternStack(frames));
  }
  for (size_t i = 0; i < events.size(); ++i) events[i].text_or_stack = stacks[i % stacks.size()];
}

Trace MakeBase(Choices& choices) {
  const Base& base = kBases[choices.Below(std::size(kBases))];
  testing::Made made;
  made.seed = choices.Below(16);
  made.requests = 20 + 2 * static_cast<uint32_t>(choices.Byte());
  made.torch = base.torch;
  made.capacity = MiB(base.capacity_mib);
  made.streams = base.streams;
  made.pools = base.pools;
  made.release_pools = base.pools > 0;
  made.late_frees = base.late_frees;
  made.few_sizes = base.few_sizes;
  made.empty_caches = true;
  made.stacks = false;
  const TorchProfile& profile = testing::ProfileOf(made);
  if (!ParseAllocatorConf(base.conf, profile, &made.config).ok()) return Trace();
  Trace trace = testing::MakeRecording(made);
  trace.layout = testing::LayoutOf(profile);
  trace.settings->conf = base.conf;
  trace.settings->expandable_segments = made.config.expandable_segments;
  std::vector<Event>& events = trace.devices[0].events.kept();
  AddStacks(trace, events);
  const uint64_t lost = choices.Byte();  // of 1024 parts; most often none
  if (lost < 128) {
    events.erase(events.begin(),
                 events.begin() + static_cast<ptrdiff_t>(events.size() * lost / 128));
  }
  if (choices.Below(4) != 0) trace.total_memory.reset();
  if (base.is_program) {
    trace.is_program = true;
    trace.completion = choices.Below(2) == 0 ? Completion::kExplicit : Completion::kAtOnce;
    std::erase_if(events, [](const Event& event) { return !IsRequest(event.kind); });
    trace.devices[0].has_final_state = false;
    trace.devices[0].final_state.clear();
  }
  return trace;
}

constexpr uint64_t kEdges[] = {0,
                               1,
                               511,
                               512,
                               uint64_t{1} << 20,
                               (uint64_t{1} << 20) + 1,
                               uint64_t{2} << 20,
                               uint64_t{20} << 20,
                               uint64_t{1} << 31,
                               uint64_t{1} << 32,
                               uint64_t{1} << 40,
                               uint64_t{1} << 41,
                               uint64_t{1} << 47,
                               uint64_t{1} << 48,
                               (uint64_t{1} << 56) - 512,
                               uint64_t{1} << 56,
                               (uint64_t{1} << 60) - 512,
                               uint64_t{1} << 60,
                               uint64_t{1} << 62,
                               (uint64_t{1} << 63) - 512,
                               uint64_t{1} << 63,
                               ~uint64_t{0} - 511,
                               ~uint64_t{0},
                               0x7f0000000000,
                               0x7fffffffffff};

uint64_t Changed(uint64_t value, uint64_t other, uint64_t how, uint64_t by) {
  constexpr uint64_t kSteps[] = {
      1, 512, 4096, uint64_t{1} << 20, uint64_t{2} << 20, uint64_t{32} << 20};
  switch (how % 6) {
    case 0: return kEdges[by % std::size(kEdges)];
    case 1: return value << (1 + by % 40);
    case 2: return value >> (1 + by % 20);
    case 3: return value + kSteps[by % std::size(kSteps)];
    case 4: return value - kSteps[by % std::size(kSteps)];
    default: return other;
  }
}

template <typename Quantity>
void Change(Quantity& value, const Quantity& other, uint64_t how, uint64_t by) {
  value = Quantity(Changed(value.value(), other.value(), how, by));
}

// Changes one field of one event, or the place of the event itself.
void ChangeEvent(Trace& trace, Choices& choices) {
  DeviceTrace& device = trace.devices[choices.Below(4) % trace.devices.size()];
  std::vector<Event>& events = device.events.kept();
  if (events.empty()) return;
  const uint64_t what = choices.Byte();
  const uint64_t how = choices.Byte();
  const uint64_t by = choices.Byte();
  const size_t at = choices.Word() % events.size();
  const size_t from = choices.Word() % events.size();
  Event& event = events[at];
  switch (what % 12) {
    case 0:
    case 1:
    case 2: Change(event.size, events[from].size, how, by); break;
    case 3:
    case 4: Change(event.address, events[from].address, how, by); break;
    case 5: event.stream = static_cast<uint32_t>(by % trace.streams.size()); break;
    case 6:
      event.kind = static_cast<EventKind>(by % (static_cast<uint64_t>(EventKind::kSnapshot) + 1));
      event.text_or_stack = 0;
      break;
    case 7: event.pool = static_cast<uint16_t>(by % trace.pools.size()); break;
    case 8: events.insert(events.begin() + static_cast<ptrdiff_t>(at), events[from]); break;
    case 9: events.erase(events.begin() + static_cast<ptrdiff_t>(at)); break;
    case 10: std::swap(events[at], events[from]); break;
    default:  // of all of its kind
      for (Event& other : events) {
        if (other.kind == event.kind) Change(other.size, event.size, how, by);
      }
  }
}

void ChangeSegment(Trace& trace, Choices& choices) {
  MemoryState& segments = trace.devices[choices.Below(4) % trace.devices.size()].final_state;
  if (segments.empty()) return;
  const uint64_t what = choices.Byte();
  const uint64_t how = choices.Byte();
  const uint64_t by = choices.Byte();
  SegmentInfo& segment = segments[choices.Byte() % segments.size()];
  const SegmentInfo& other = segments[choices.Byte() % segments.size()];
  const size_t at = choices.Byte();
  BlockInfo none;
  BlockInfo& block = segment.blocks.empty() ? none : segment.blocks[at % segment.blocks.size()];
  const BlockInfo& neighbour = other.blocks.empty() ? none : other.blocks[at % other.blocks.size()];
  switch (what % 14) {
    case 0: Change(segment.address, other.address, how, by); break;
    case 1: Change(segment.total_size, other.total_size, how, by); break;
    case 2: segment.stream = trace.streams[by % trace.streams.size()]; break;
    case 3: segment.stream = StreamHandle(by << 20); break;
    case 4: segment.pool_id = {by % 3, how % 3}; break;
    case 5: segment.is_large = !segment.is_large; break;
    case 6: segment.is_expandable = !segment.is_expandable; break;
    case 7: Change(block.address, neighbour.address, how, by); break;
    case 8: Change(block.size, neighbour.size, how, by); break;
    case 9: Change(block.requested_size, neighbour.requested_size, how, by); break;
    case 10: block.state = static_cast<BlockState>(by % 3); break;
    case 11: segment.blocks = other.blocks; break;
    case 12: segments.push_back(SegmentInfo(segment)); break;
    default: segments.erase(segments.begin() + (&segment - segments.data()));
  }
  std::stable_sort(
      segments.begin(), segments.end(),
      [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
}

// Changes what the whole file says: devices, settings, tables, layout.
void ChangeFile(Trace& trace, Choices& choices) {
  constexpr const char* kConfs[] = {"",
                                    "expandable_segments:True",
                                    "max_split_size_mb:21",
                                    "garbage_collection_threshold:0.1",
                                    "roundup_power2_divisions:1",
                                    "roundup_power2_divisions:64",
                                    "backend:cudaMallocAsync",
                                    "per_process_memory_fraction:0.1",
                                    "large_segment_size_mb:512",
                                    "pinned_use_cuda_host_register:True",
                                    "nonsense"};
  const uint64_t what = choices.Byte();
  const uint64_t how = choices.Byte();
  const uint64_t by = choices.Byte();
  DeviceTrace& device = trace.devices[how % trace.devices.size()];
  switch (what % 14) {
    case 0: trace.total_memory = Bytes(Changed(uint64_t{1} << 30, 0, how, by)); break;
    case 1: trace.memory_fraction = static_cast<double>(by) / 200; break;
    case 2:
      if (trace.settings.has_value()) trace.settings->conf = kConfs[by % std::size(kConfs)];
      break;
    case 3:
      if (trace.settings.has_value()) {
        trace.settings->max_split_size = static_cast<int64_t>(Changed(1 << 20, 0, how, by));
      }
      break;
    case 4:
      if (trace.settings.has_value()) {
        trace.settings->garbage_collection_threshold = static_cast<double>(by) / 200;
      }
      break;
    case 5:
      if (trace.settings.has_value()) {
        trace.settings->roundup_power2_divisions.emplace_back(by, uint64_t{1} << (how % 64));
      }
      break;
    case 6:
      trace.torch_version = kBases[by % std::size(kBases)].torch;
      trace.torch_version += ".0";
      break;
    case 7: trace.settings.reset(); break;
    case 8:  // the same on a device more
      if (trace.devices.size() < 4) {
        trace.devices.push_back(DeviceTrace(device));
        trace.devices.back().device = trace.devices[trace.devices.size() - 2].device + 1;
      }
      break;
    case 9: device.events.kept().clear(); break;
    case 10: device.has_final_state = false, device.final_state.clear(); break;
    case 11: trace.layout.has_block_addresses = !trace.layout.has_block_addresses; break;
    case 12: trace.layout.has_is_expandable = !trace.layout.has_is_expandable; break;
    default:  // streams far apart
      for (size_t i = 1; i < trace.streams.size(); ++i) {
        trace.streams[i] = StreamHandle((i << (how % 56)) + i + by);
      }
      std::sort(trace.streams.begin(), trace.streams.end());
      trace.streams.erase(std::unique(trace.streams.begin(), trace.streams.end()),
                          trace.streams.end());
  }
}

}  // namespace

const std::vector<std::vector<std::string>>& AttackedCommands() {
  static const auto* const commands = [] {
    auto* const lines = new std::vector<std::vector<std::string>>;
    for (const char* const line : {
             "inspect FILE",
             "inspect --deep FILE",
             "inspect --deep --json FILE",
             "replay FILE --jobs 1",
             "replay FILE --json --torch 2.3",
             "replay FILE --start fresh",
             "replay FILE --addresses up",
             "replay FILE --addresses down --capacity 1GiB",
             "replay FILE --capacity 30MiB",
             "replay FILE --capacity unlimited --fraction 0.3",
             "replay FILE --conf expandable_segments:True",
             "replay FILE --conf expandable_segments:True --torch 2.15 --capacity 200MiB",
             "replay FILE --conf max_split_size_mb:21 --capacity 500MiB",
             "replay FILE --conf garbage_collection_threshold:0.1 --fraction 0.5 --capacity 400MiB",
             "replay FILE --conf roundup_power2_divisions:1",
             "replay FILE --conf backend:cudaMallocAsync",
             "replay FILE --snapshot-out /dev/null --torch 2.13",
             "replay FILE --events-out /dev/null",
             "oom FILE --jobs 1",
             "oom FILE --jobs 1 --capacity 30MiB",
             "oom FILE --jobs 1 --capacity 300MiB --conf expandable_segments:True",
             "oom FILE --jobs 1 --recorded-gpu 80GiB --json",
             "oom FILE --jobs 1 --fraction 0.05 --capacity 1GiB",
             "sweep FILE --jobs 1",
             "sweep FILE --jobs 1 --capacity 300MiB",
             "sweep FILE --jobs 1 --conf expandable_segments:True --conf max_split_size_mb:32 "
             "--json",
             "sweep FILE FILE --together --jobs 1 --conf  --conf expandable_segments:True",
             "fit FILE --jobs 1",
             "fit FILE --jobs 1 --fraction 0.5",
             "fit FILE --jobs 1 --conf garbage_collection_threshold:0.3 --torch 2.13",
             "report FILE -o /dev/null --jobs 1",
             "report FILE -o /dev/null --jobs 1 --conf max_split_size_mb:64",
             "report FILE -o /dev/null --jobs 1 --capacity 200MiB",
             "diff FILE FILE",
             "convert FILE /dev/null --to torch_snapshot_pickle",
             "convert FILE /dev/null --to flat_jsonl",
             "convert FILE /dev/null --to protobuf",
             "convert FILE /dev/null --to perfetto --slices",
             "convert FILE /dev/null --to svg --conf expandable_segments:True",
             "convert FILE /dev/null --to csv --capacity 300MiB",
         }) {
      std::vector<std::string>& words = lines->emplace_back();
      for (const absl::string_view word : absl::StrSplit(line, ' ')) words.emplace_back(word);
    }
    return lines;
  }();
  return *commands;
}

MutatedRecording MutateRecording(std::string_view bytes) {
  MutatedRecording made;
  Choices choices(bytes);
  const auto& commands = AttackedCommands();
  made.arguments = commands[choices.Byte() % commands.size()];
  const uint64_t form = choices.Byte();
  Trace trace = MakeBase(choices);
  for (int change = 0; change < 24 && !choices.empty() && !trace.devices.empty(); ++change) {
    const uint64_t what = choices.Byte() % 8;
    if (what < 4) {
      ChangeEvent(trace, choices);
    } else if (what < 7) {
      ChangeSegment(trace, choices);
    } else {
      ChangeFile(trace, choices);
    }
  }
  constexpr const char* kForms[] = {"torch_snapshot_pickle", "flat_jsonl", "protobuf"};
  const char* const name = trace.is_program ? kForms[1 + form % 2] : kForms[form % 3];
  StringSink sink;
  if (FindWritableFormat(name)->write(trace, sink, nullptr).ok()) made.file = sink.text();
  return made;
}

}  // namespace memreplay::fuzz
