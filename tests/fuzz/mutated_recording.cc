#include "tests/fuzz/mutated_recording.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "tests/fuzz/choices.h"
#include "tests/sim/support/made_recording.h"
#include "trace/bytes/byte_sink.h"
#include "trace/formats/write_trace.h"
#include "trace/value/strings.h"

namespace memreplay::fuzz {
namespace {

constexpr const char* kConfs[] = {"",
                                  "expandable_segments:True",
                                  "max_split_size_mb:21",
                                  "garbage_collection_threshold:0.1",
                                  "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                                  "roundup_power2_divisions:1",
                                  "roundup_power2_divisions:64",
                                  "backend:cudaMallocAsync",
                                  "per_process_memory_fraction:0.1",
                                  "large_segment_size_mb:512",
                                  "graph_capture_record_stream_reuse:True",
                                  "throw_on_cudamalloc_oom:True",
                                  "pinned_use_cuda_host_register:True",
                                  "expandable_segments:True,garbage_collection_threshold:0.9",
                                  "max_split_size_mb:64,garbage_collection_threshold:0.5",
                                  "max_split_size_mb:18446744073709551615",
                                  "nonsense:1"};

struct Base {
  const char* torch;
  const char* conf;
  uint64_t capacity_mib;
  uint32_t streams;
  uint32_t pools;
  bool late_frees;
  bool few_sizes;
  bool is_program;
  bool trains = false;
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
constexpr Base kTraining[] = {
    {"2.6", "", 1 << 16, 1, 0, false, false, false, true},
    {"2.11", "expandable_segments:True", 1 << 16, 1, 0, false, false, false, true},
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

// Steps of training a model of equal blocks, with the stacks and, unless `noted` is false, the
// notes that a recording of one has: what categories, advice, modules and steps are found by.
class TrainingSteps {
 public:
  TrainingSteps(uint64_t blocks, uint64_t mib, bool noted)
      : blocks_(blocks), unit_(MiB(std::max<uint64_t>(mib, 1))), noted_(noted) {}

  Trace Record(const testing::Made& made, uint64_t steps) {
    for (uint64_t block = 0; block < blocks_; ++block) {
      Alloc("parameter", block, unit_, kLoad);
      Note(NoteKind::kParameter, Named("parameter", block));
    }
    for (uint64_t step = 0; step < steps; ++step) Step(step);
    Note(NoteKind::kEvaluation);
    for (uint64_t block = 0; block < blocks_; ++block) Alloc("hidden", block, unit_, kForward);
    for (uint64_t block = 0; block < blocks_; ++block) Free("hidden", block);
    Note(NoteKind::kEnd);
    return Finish(testing::RecordingOf(requests_, made));
  }

 private:
  enum Place { kNowhere, kLoad, kForward, kLinear, kLoss, kState, kUser, kPlaces };
  struct Noted {
    NoteKind kind;
    uint64_t request;
    std::string name;
  };

  void Step(uint64_t step) {
    Alloc("batch", 0, unit_, kUser);
    Note(NoteKind::kForward, "Net");
    Note(NoteKind::kInput, Named("batch", 0));
    for (uint64_t block = 0; block < blocks_; ++block) {
      Note(NoteKind::kModule, Named("h", block));
      Alloc("temporary", block, unit_, kForward);
      Alloc("saved", block, unit_ * 4, kForward);
      Free("temporary", block);
      Alloc("result", block, unit_, kLinear);
      Note(NoteKind::kEnd);
    }
    Alloc("logits", 0, unit_ * 16, kLinear);
    Alloc("softmax", 0, unit_ * 16, kLoss);
    Note(NoteKind::kEnd);
    Note(NoteKind::kBackward);
    Alloc("dlogits", 0, unit_ * 16, kNowhere);
    Free("softmax", 0);
    Free("logits", 0);
    for (uint64_t block = blocks_; block-- > 0;) {
      Alloc("gradient", block, unit_, kNowhere);
      Note(NoteKind::kGradient, Named("gradient", block));
      Free("result", block);
      Free("saved", block);
    }
    Free("dlogits", 0);
    Note(NoteKind::kEnd);
    Note(NoteKind::kOptimizer, "AdamW");
    for (uint64_t block = 0; block < blocks_; ++block) {
      if (step == 0) {
        Alloc("state", block, unit_ * 2, kState);
        Note(NoteKind::kOptimizerState, Named("state", block));
      }
      Alloc("update", block, unit_, kState);
    }
    for (uint64_t block = 0; block < blocks_; ++block) Free("update", block);
    Note(NoteKind::kEnd);
    for (uint64_t block = 0; block < blocks_; ++block) Free("gradient", block);
    Free("batch", 0);
  }

  static std::string Named(std::string_view what, uint64_t number) {
    return std::string(what) + "." + std::to_string(number);
  }
  void Alloc(std::string_view what, uint64_t number, Bytes size, Place place) {
    Event& request = requests_.emplace_back();
    request.kind = EventKind::kAlloc;
    request.id = static_cast<AllocationId>(made_++);
    request.size = size;
    request.text_or_stack = place;
    live_[Named(what, number)] = request.id;
  }
  void Free(std::string_view what, uint64_t number) {
    Event& request = requests_.emplace_back();
    request.kind = EventKind::kFree;
    request.id = live_[Named(what, number)];
    request.text_or_stack = kUser;
  }
  void Note(NoteKind kind, const std::string& name = "") {
    noted_rows_.push_back({kind, requests_.size(), name});
    if (const auto found = live_.find(name); found != live_.end())
      ids_[kind].push_back(found->second);
  }

  // Gives the events their stacks, and the notes their places and addresses.
  Trace Finish(Trace trace) const {
    constexpr const char* kModule = "/x/torch/nn/modules/module.py";
    const std::vector<std::pair<const char*, const char*>> frames[kPlaces] = {
        {},
        {{kModule, "convert"}, {kModule, "to"}, {"train.py", "<module>"}},
        {{"model.py", "forward"}, {kModule, "_call_impl"}, {"train.py", "step"}},
        {{"/x/torch/nn/modules/linear.py", "forward"},
         {kModule, "_call_impl"},
         {"train.py", "step"}},
        {{"/x/torch/nn/functional.py", "cross_entropy"},
         {"model.py", "forward"},
         {"train.py", "step"}},
        {{"/x/torch/optim/adamw.py", "_multi_tensor_adamw"},
         {"/x/torch/optim/adamw.py", "step"},
         {"train.py", "step"}},
        {{"train.py", "step"}}};
    uint32_t stacks[kPlaces];
    for (size_t place = 0; place < kPlaces; ++place) {
      std::vector<uint32_t> indexes;
      for (const auto& [file, name] : frames[place]) {
        indexes.push_back(
            trace.stacks.InternFrame({trace.strings.Intern(file), trace.strings.Intern(name), 7}));
      }
      stacks[place] = trace.stacks.InternStack(indexes);
    }
    std::vector<Event>& events = trace.devices[0].events.kept();
    std::vector<uint64_t> place_of = {};  // of requests, among the events
    std::map<AllocationId, Address> addresses;
    for (size_t i = 0; i < events.size(); ++i) {
      const bool is_request =
          events[i].kind == EventKind::kAlloc || events[i].kind == EventKind::kFree;
      if (!is_request || place_of.size() >= requests_.size()) {
        if (!HasText(events[i].kind)) events[i].text_or_stack = kNoStack;
        continue;
      }
      const Event& request = requests_[place_of.size()];
      place_of.push_back(i);
      events[i].text_or_stack =
          request.text_or_stack == kNowhere ? kNoStack : stacks[request.text_or_stack];
      if (events[i].kind == EventKind::kAlloc) addresses[request.id] = events[i].address;
    }
    std::map<NoteKind, size_t> met;
    for (const Noted& noted : noted_rows_) {
      MemoryNote note;
      note.kind = noted.kind;
      note.event = noted.request < place_of.size() ? place_of[noted.request] : events.size();
      const bool has_address = ids_.contains(noted.kind);
      if (has_address) note.address = addresses[ids_.at(noted.kind)[met[noted.kind]++]];
      note.name = trace.strings.Intern(noted.name);
      if (noted_) trace.devices[0].notes.push_back(note);
    }
    return trace;
  }

  const uint64_t blocks_;
  const Bytes unit_;
  const bool noted_;
  uint64_t made_ = 0;
  std::vector<Event> requests_;
  std::vector<Noted> noted_rows_;
  std::map<NoteKind, std::vector<AllocationId>> ids_;
  std::map<std::string, AllocationId> live_;
};

Trace MakeBase(Choices& choices) {
  const uint64_t which = choices.Byte();
  const Base& base =
      which < 192 ? kBases[which % std::size(kBases)] : kTraining[which % std::size(kTraining)];
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
  Trace trace = base.trains
                    ? TrainingSteps(1 + made.seed % 5, made.requests / 20, made.seed % 3 != 0)
                          .Record(made, 1 + made.seed % 4)
                    : testing::MakeRecording(made);
  trace.layout = testing::LayoutOf(profile);
  trace.settings->conf = base.conf;
  trace.settings->expandable_segments = made.config.expandable_segments;
  std::vector<Event>& events = trace.devices[0].events.kept();
  if (!base.trains) AddStacks(trace, events);
  const uint64_t lost = choices.Byte();  // of 1024 parts; most often none
  if (lost < 128) {
    const size_t count = events.size() * lost / 128;
    events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(count));
    for (MemoryNote& note : trace.devices[0].notes) note.event -= std::min(note.event, count);
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
  const uint64_t what = choices.Byte();
  const uint64_t how = choices.Byte();
  const uint64_t by = choices.Byte();
  DeviceTrace& device = trace.devices[how % trace.devices.size()];
  switch (what < 224 ? what % 14 : 14 + what % 3) {
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
    case 14:
      for (MemoryNote& note : device.notes) {
        if (note.event % (how % 7 + 1) == 0) note.kind = static_cast<NoteKind>(by % kNoteKinds);
      }
      break;
    case 15:
      for (MemoryNote& note : device.notes) note.event = Changed(note.event, 0, how, by);
      break;
    case 16:
      for (MemoryNote& note : device.notes) {
        if (note.event % 3 == how % 3)
          note.address = Address(Changed(note.address.value(), 0, how, by));
      }
      if (by % 4 == 0)
        device.time_us.assign(device.events.size(), static_cast<int64_t>(how << by % 56));
      for (uint64_t i = 0; i < by % 5; ++i) {
        trace.annotations.push_back(
            {trace.strings.Intern("step"), trace.strings.Intern(i % 2 == 0 ? "START" : "END"),
             static_cast<int>(how % 2), static_cast<int64_t>(i << by % 63)});
      }
      break;
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
             "advise FILE --card 200MiB",
             "advise FILE --card rtx-4090 --jobs 1",
             "advise FILE --json",
             "report FILE -o /dev/null --search --jobs 1",
             "report FILE -o /dev/null --conf backend:cudaMallocAsync --conf "
             "expandable_segments:True",
             "report FILE OTHER -o /dev/null --jobs 1",
             "report FILE --json",
             "diff FILE OTHER",
             "diff OTHER FILE --stack train --json",
             "sweep FILE OTHER --together --jobs 1 --conf  --conf max_split_size_mb:32",
             "sweep OTHER FILE --jobs 1 --conf expandable_segments:True",
             "sweep FILE --jobs 1 --start recorded --torch 2.3",
             "inspect FILE OTHER OTHER",
             "inspect --deep FILE --stack train.py --top 3",
             "convert FILE /dev/null --to perfetto",
             "convert FILE /dev/null --to svg",
             "convert FILE /dev/null --to csv",
             "replay FILE OTHER --json",
             "replay FILE --set x=1",
             "fit FILE --set x=? --jobs 1",
             "oom FILE --torch 2.3 --jobs 1",
             "explain FILE",
             "advise FILE=3 OTHER=4 --batch=? --card 300MiB",
             "advise OTHER=3 FILE=4 --batch=1000000 --json",
         }) {
      std::vector<std::string>& words = lines->emplace_back();
      for (const absl::string_view word : absl::StrSplit(line, ' ')) words.emplace_back(word);
    }
    return lines;
  }();
  return *commands;
}

std::vector<std::string> WithFiles(std::vector<std::string> words, std::string_view file,
                                   std::string_view other) {
  for (std::string& word : words) {
    const size_t end = std::min(word.find('='), word.size());
    const std::string_view name = std::string_view(word).substr(0, end);
    if (name != "FILE" && name != "OTHER") continue;
    word = StrCat(name == "FILE" ? file : other, std::string_view(word).substr(end));
  }
  return words;
}

namespace {

constexpr const char* kCapacities[] = {"0",
                                       "1",
                                       "2MiB",
                                       "21MiB",
                                       "30MiB",
                                       "200MiB",
                                       "1GiB",
                                       "16GiB",
                                       "unlimited",
                                       "rtx-4090",
                                       "h100",
                                       "256TiB",
                                       "256TiB1",
                                       "281474976710657",
                                       "18446744073709551615",
                                       "custom:12GiB,cc=8.9,sms=46"};
constexpr const char* kFractions[] = {"0", "0.05", "0.3", "0.5", "0.999", "1", "1e-300", "nan"};
constexpr const char* kOrders[] = {"up", "down"};
constexpr const char* kStarts[] = {"recorded", "fresh"};
constexpr const char* kNumbers[] = {"0", "1", "2", "100000", "9223372036854775807", "-1"};
constexpr const char* kWords[] = {"train.py", "step", "", "C++"};

// A flag that some commands have; without values, it is a switch, but --torch has each release.
struct FlagForm {
  std::string_view name;
  std::string_view commands;
  absl::Span<const char* const> values;
};
const FlagForm kFlags[] = {
    {"--conf", "replay oom sweep fit report convert", kConfs},
    {"--torch", "replay oom sweep fit report advise", {}},
    {"--capacity", "replay oom sweep report convert", kCapacities},
    {"--card", "advise", kCapacities},
    {"--recorded-gpu", "oom", kCapacities},
    {"--context", "fit", kCapacities},
    {"--fraction", "replay oom sweep fit report", kFractions},
    {"--addresses", "replay oom sweep fit report", kOrders},
    {"--start", "replay sweep", kStarts},
    {"--device", "inspect replay oom sweep fit report convert advise", kNumbers},
    {"--top", "inspect oom sweep diff", kNumbers},
    {"--stack", "inspect oom diff", kWords},
    {"--deep", "inspect", {}},
    {"--slices", "convert", {}},
    {"--json", "inspect replay oom sweep fit report diff advise explain", {}},
};

}  // namespace

void AddFlags(std::string_view bytes, std::vector<std::string>* words) {
  Choices choices(bytes);
  for (uint64_t count = choices.Below(4); count > 0; --count) {
    const FlagForm& flag = kFlags[choices.Below(std::size(kFlags))];
    const uint64_t value = choices.Byte();
    const std::vector<std::string> commands = absl::StrSplit(ToAbsl(flag.commands), ' ');
    if (std::find(commands.begin(), commands.end(), (*words)[0]) == commands.end()) continue;
    words->emplace_back(flag.name);
    if (flag.name == "--torch") {
      const absl::Span<const TorchProfile> all = AllTorchProfiles();
      const size_t release = value % (all.size() + 1);
      words->emplace_back(release < all.size() ? all[release].release : "1.0");
    }
    if (!flag.values.empty()) words->emplace_back(flag.values[value % flag.values.size()]);
  }
}

MutatedRecording MutateRecording(std::string_view bytes) {
  MutatedRecording made;
  Choices choices(bytes);
  const auto& commands = AttackedCommands();
  made.arguments = commands[choices.Byte() % commands.size()];
  const uint64_t form = choices.Byte();
  constexpr size_t kFlagBytes = 7;
  if (bytes.size() > 32) AddFlags(bytes.substr(bytes.size() - kFlagBytes), &made.arguments);
  Trace trace = MakeBase(choices);
  constexpr const char* kForms[] = {"torch_snapshot_pickle", "flat_jsonl", "protobuf"};
  const TraceFormat& written =
      *FindWritableFormat(trace.is_program ? kForms[1 + form % 2] : kForms[form % 3]);
  StringSink sink, other;
  if (written.write(trace, other, nullptr).ok()) made.other = other.text();
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
  if (written.write(trace, sink, nullptr).ok()) made.file = sink.text();
  return made;
}

}  // namespace memreplay::fuzz
