#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trace/support/py_value.h"
#include "tests/trace/support/sample_snapshot.h"
#include "trace/formats/torch/torch_snapshot.h"

namespace memreplay {
namespace {

absl::StatusOr<Trace> Read(std::string bytes) {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return source.status();
  const std::string head((*source)->Peek(4096));
  if (IsSnapshotPickle(head)) return ReadSnapshotPickle(**source, "f");
  if (IsSnapshotJson(head)) return ReadSnapshotJson(**source, "f");
  return absl::InvalidArgumentError("no snapshot");
}

std::string ErrorOf(const Py& value) {
  const absl::StatusOr<Trace> trace = Read(PythonPickle(value));
  return trace.ok() ? "read" : std::string(trace.status().message());
}
std::string JsonErrorOf(const std::string& text) {
  const absl::StatusOr<Trace> trace = Read(text);
  return trace.ok() ? "read" : std::string(trace.status().message());
}
bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Everything of a trace that the encoding of the file must not change.
std::string Fingerprint(const Trace& trace) {
  std::string out;
  const auto add = [&](auto... numbers) { ((out += std::to_string(numbers) + " "), ...); };
  const auto add_stack = [&](uint32_t stack) {
    for (const uint32_t index : trace.stacks[stack]) {
      const Frame& frame = trace.stacks.frame(index);
      out += std::string(trace.strings[frame.name]) + "@" +
             std::string(trace.strings[frame.filename]) + ":" + std::to_string(frame.line) + " ";
    }
  };
  for (const DeviceTrace& device : trace.devices) {
    add(device.device, device.has_final_state);
    for (const Event& e : device.events) {
      out += std::string(EventKindName(e.kind)) + " ";
      add(e.address.value(), e.size.value(), trace.streams[e.stream].value(), e.pool, e.id,
          e.scratch);
      add_stack(e.text_or_stack);
    }
    for (const int64_t time : device.time_us) add(time);
    for (const SegmentInfo& s : device.final_state) {
      add(s.address.value(), s.total_size.value(), s.stream.value(), s.is_large, s.is_expandable,
          s.pool_id.first, s.pool_id.second);
      add_stack(s.stack);
      for (const BlockInfo& b : s.blocks) {
        add(b.address.value(), b.size.value(), b.requested_size.value(), static_cast<int>(b.state));
        add_stack(b.stack);
      }
    }
  }
  for (const Annotation& a : trace.annotations) {
    out += std::string(trace.strings[a.name]) + std::string(trace.strings[a.stage]);
    add(a.device, a.time_us);
  }
  if (trace.settings.has_value()) out += trace.settings->conf;
  for (size_t kind = 0; kind < static_cast<size_t>(DiagnosticKind::kCount); ++kind) {
    add(trace.diagnostics.count(static_cast<DiagnosticKind>(kind)));
  }
  return out;
}

TEST(TorchSnapshotReader, EveryReleaseReadsTheSameFacts) {
  for (const Release release : kReleases) {
    SCOPED_TRACE(static_cast<int>(release));
    const absl::StatusOr<Trace> trace = Read(PythonPickle(SampleSnapshot(release)));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->format, "torch_snapshot_pickle");
    EXPECT_FALSE(trace->is_program);
    ASSERT_EQ(trace->devices.size(), 1u);  // device 1 is mentioned nowhere
    const DeviceTrace& device = trace->devices[0];
    ASSERT_EQ(device.events.size(), kSampleEvents);
    EXPECT_EQ(device.events[0].kind, EventKind::kSegmentAlloc);
    EXPECT_EQ(device.events[1].kind, EventKind::kAlloc);
    EXPECT_EQ(device.events[1].size, Bytes(300));
    EXPECT_EQ(device.events[1].address, Address(kSampleAddress));
    EXPECT_EQ(device.events[1].id, kNoAllocation);
    EXPECT_EQ(device.events[3].kind, EventKind::kFree);
    EXPECT_EQ(device.events[4].kind, EventKind::kOom);
    EXPECT_EQ(device.events[4].address, Address(1 << 30));
    EXPECT_EQ(device.events[4].size, GiB(4));
    EXPECT_EQ(device.events[5].kind, EventKind::kSnapshot);
    EXPECT_EQ(device.events[5].size, Bytes(1536));
    // Streams ascend and are named by index.
    ASSERT_EQ(trace->streams.size(), 2u);
    EXPECT_EQ(trace->streams[device.events[4].stream], StreamHandle(0x5500));
    EXPECT_EQ(device.events[1].stream, 0u);
    // The final state; 2.0 gives no addresses, they follow from the sizes.
    ASSERT_TRUE(device.has_final_state);
    ASSERT_EQ(device.final_state.size(), 1u);
    const SegmentInfo& segment = device.final_state[0];
    ASSERT_EQ(segment.blocks.size(), 3u);
    EXPECT_FALSE(segment.is_large);
    EXPECT_EQ(segment.blocks[1].address, Address(kSampleAddress + 512));
    EXPECT_EQ(segment.blocks[1].state, BlockState::kPendingFree);
    EXPECT_EQ(segment.blocks[2].state, BlockState::kInactive);
    ASSERT_EQ(trace->stacks[segment.blocks[0].stack].size(), 2u);
    EXPECT_EQ(trace->stacks[segment.blocks[2].stack].size(), 0u);
    const Frame& inner = trace->stacks.frame(trace->stacks[segment.blocks[0].stack][0]);
    EXPECT_EQ(trace->strings[inner.name], "forward");
    EXPECT_EQ(trace->strings[inner.filename], "train.py");
    EXPECT_EQ(inner.line, 12u);
    EXPECT_EQ(trace->stacks.size(), 2u);  // the empty one and this one
    // These tell the releases apart.
    const LayoutFacts& layout = trace->layout;
    EXPECT_EQ(layout.pickle_protocol, 4);
    EXPECT_TRUE(layout.has_device_traces);
    EXPECT_EQ(layout.has_block_addresses, release >= Release::k21);
    EXPECT_EQ(layout.has_block_history, release < Release::k21);
    EXPECT_EQ(layout.has_is_expandable, release >= Release::k21);
    EXPECT_EQ(layout.has_time_us, release >= Release::k22);
    EXPECT_EQ(layout.has_allocator_settings, release >= Release::k23);
    EXPECT_EQ(layout.has_external_annotations, release >= Release::k25);
    EXPECT_EQ(layout.has_compile_context, release >= Release::k28);
    EXPECT_EQ(layout.has_graph_capture_record_stream_reuse, release >= Release::k29);
    EXPECT_EQ(layout.has_user_metadata, release >= Release::k210);
    EXPECT_EQ(layout.has_event_pool_id, release >= Release::k213);
    EXPECT_EQ(device.time_us.size(), release >= Release::k22 ? kSampleEvents : 0u);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kNoBlockAddresses),
              release < Release::k21 ? 3u : 0u);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kSegmentSumMismatch), 0u);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0u);
    EXPECT_EQ(trace->settings.has_value(), release >= Release::k23);
  }
}

TEST(TorchSnapshotReader, SettingsAndAnnotations) {
  const absl::StatusOr<Trace> trace = Read(PythonPickle(SampleSnapshot(Release::k210)));
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_TRUE(trace->settings.has_value());
  EXPECT_EQ(trace->settings->conf, "max_split_size_mb:128");
  EXPECT_EQ(trace->settings->max_split_size, 134217728);
  EXPECT_EQ(trace->settings->garbage_collection_threshold, 0.5);
  EXPECT_EQ(trace->settings->expandable_segments, false);
  EXPECT_EQ(trace->settings->graph_capture_record_stream_reuse, true);
  ASSERT_EQ(trace->settings->roundup_power2_divisions.size(), 2u);
  EXPECT_EQ(trace->settings->roundup_power2_divisions[1], (std::pair<uint64_t, uint64_t>{2, 4}));
  ASSERT_EQ(trace->annotations.size(), 1u);
  EXPECT_EQ(trace->strings[trace->annotations[0].name], "step");
  EXPECT_EQ(trace->strings[trace->annotations[0].stage], "START");
  EXPECT_EQ(trace->annotations[0].time_us, 1700000000000000);
}

TEST(TorchSnapshotReader, EncodingAndKeyOrderDoNotMatter) {
  for (const Release release : kReleases) {
    const Py sample = SampleSnapshot(release);
    const absl::StatusOr<Trace> expected = Read(PythonPickle(sample));
    ASSERT_TRUE(expected.ok());
    std::vector<std::string> files = {CppPickle(sample), Json(sample)};
    for (const int protocol : {2, 3, 4, 5}) {
      for (const size_t batch : {1, 2, 3, 1000}) {  // 1: SETITEM and APPEND one by one
        for (const bool reverse : {false, true}) {
          files.push_back(
              PythonPickle(sample, {.protocol = protocol, .batch = batch, .reverse = reverse}));
        }
      }
    }
    for (const std::string& file : files) {
      const absl::StatusOr<Trace> trace = Read(file);
      ASSERT_TRUE(trace.ok()) << trace.status();
      EXPECT_EQ(Fingerprint(*trace), Fingerprint(*expected));
    }
  }
}

TEST(TorchSnapshotReader, ABareListOfSegments) {
  const Py segments = SampleSnapshot(Release::k25)["segments"];
  for (const std::string& file : {PythonPickle(segments), CppPickle(segments), Json(segments)}) {
    const absl::StatusOr<Trace> trace = Read(file);
    ASSERT_TRUE(trace.ok()) << trace.status();
    ASSERT_EQ(trace->devices.size(), 1u);
    EXPECT_EQ(trace->devices[0].final_state.size(), 1u);
    EXPECT_FALSE(trace->layout.has_device_traces);
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kNoTrace), 1u);
  }
}

TEST(TorchSnapshotReader, TracesWithoutSegments) {
  Py sample = Py::Dict({{"device_traces", SampleSnapshot(Release::k25)["device_traces"]}});
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_FALSE(trace->devices[0].has_final_state);
  EXPECT_EQ(trace->devices[0].events.size(), kSampleEvents);
  EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kNoTrace), 0u);
}

TEST(TorchSnapshotReader, AllDevices) {
  Py sample = SampleSnapshot(Release::k210);
  Py& traces = sample["device_traces"];
  traces.items[1] = traces.items[0];
  std::swap(traces.items[0].items[0], traces.items[0].items[1]);
  Py segment = sample["segments"].items[0];
  segment["device"] = 3;
  segment["stream"] = 0x11;
  segment["segment_pool_id"] = Py::Tuple({0, 7});
  sample["segments"].items.push_back(segment);
  segment["address"] = 0;  // lists are sorted by address
  segment["blocks"].items[0]["address"] = 0;
  segment["blocks"].items[1]["address"] = 512;
  segment["blocks"].items[2]["address"] = 1536;
  sample["segments"].items.push_back(segment);
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->devices.size(), 3u);
  EXPECT_EQ(trace->devices[0].device, 0);
  EXPECT_EQ(trace->devices[1].device, 1);
  EXPECT_EQ(trace->devices[2].device, 3);
  EXPECT_EQ(trace->devices[0].events[0].kind, EventKind::kAlloc);
  EXPECT_EQ(trace->devices[1].events[0].kind, EventKind::kSegmentAlloc);
  EXPECT_EQ(trace->devices[1].events.size(), kSampleEvents);
  EXPECT_EQ(trace->devices[1].time_us.size(), kSampleEvents);
  ASSERT_EQ(trace->devices[2].final_state.size(), 2u);
  EXPECT_EQ(trace->devices[2].final_state[0].address, Address(0));
  EXPECT_EQ(trace->devices[2].final_state[1].pool_id, (PoolId{0, 7}));
  EXPECT_EQ(trace->pools.size(), 2u);
  ASSERT_EQ(trace->streams.size(), 3u);
  EXPECT_EQ(trace->streams[1], StreamHandle(0x11));
  EXPECT_EQ(trace->streams[trace->devices[1].events[4].stream], StreamHandle(0x5500));
}

TEST(TorchSnapshotReader, TakesTheReleaseThatTheFileSays) {
  Py sample = SampleSnapshot(Release::k210);
  sample["torch_version"] = "2.10.0+cu128";
  for (const std::string& file : {PythonPickle(sample), CppPickle(sample), Json(sample)}) {
    const absl::StatusOr<Trace> trace = Read(file);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->torch_version, "2.10.0+cu128");
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0);
  }
  sample["torch_version"] = 2;
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_FALSE(trace.ok());
  EXPECT_TRUE(Contains(std::string(trace.status().message()), "'torch_version'")) << trace.status();
}

// As python/memreplay/_notes.py writes them. The sample's device has two allocs and one free, at
// events 1, 2 and 3.
Py SampleNotes(Py places, uint64_t end) {
  return Py::Dict({{"version", 1},
                   {"kinds", Py::List({"forward", "weather", "end", "parameter"})},
                   {"names", Py::List({"", "GPT", "h.0.weight"})},
                   {"devices", Py::List({Py::Dict({{"device", 0},
                                                   {"end", static_cast<int64_t>(end)},
                                                   {"kind", Py::List({0, 3, 1, 2})},
                                                   {"place", std::move(places)},
                                                   {"name", Py::List({1, 2, 1, 0})},
                                                   {"address", Py::List({0, 4096, 0, 0})}})})}});
}

TEST(TorchSnapshotReader, NotesStandWhereTheCountOfAllocsAndFreesSays) {
  Py sample = SampleSnapshot(Release::k210);
  sample["memreplay"] = SampleNotes(Py::List({100, 101, 102, 103}), 103);
  for (const std::string& file : {PythonPickle(sample), CppPickle(sample), Json(sample)}) {
    const absl::StatusOr<Trace> trace = Read(file);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto text = [&](std::string_view name) { return *trace->strings.Find(name); };
    EXPECT_EQ(trace->devices[0].notes,
              (std::vector<MemoryNote>{{NoteKind::kForward, text("GPT"), 0, Address()},
                                       {NoteKind::kParameter, text("h.0.weight"), 2, Address(4096)},
                                       {NoteKind::kEnd, kNoText, 4, Address()}}));
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0);
  }
}

// A place does not count an out of memory: the pass that it ended ended after it.
TEST(TorchSnapshotReader, WhatAnOutOfMemoryEndsEndsAfterIt) {
  Py sample = SampleSnapshot(Release::k210);
  std::vector<Py>& entries = sample["device_traces"].items[0].items;
  entries.push_back(entries.back());
  entries.back()["action"] = "oom";
  const auto notes_with = [](const char* kind) {
    Py notes = SampleNotes(Py::List({100, 103, 103, 103}), 103);
    notes["kinds"] = Py::List({"backward", kind, "end", "weather"});
    return notes;
  };
  const auto ends_at = [&](const char* kind) {
    sample["memreplay"] = notes_with(kind);
    const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace->devices[0].notes.back().event;
  };
  EXPECT_EQ(ends_at("oom"), ends_at("weather") + 1);
}

TEST(TorchSnapshotReader, NotesBeforeALostHeadKeepPhasesAndForgetAddresses) {
  Py sample = SampleSnapshot(Release::k210);
  sample["memreplay"] = SampleNotes(Py::List({7, 8, 9, 103}), 103);
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(
      trace->devices[0].notes,
      (std::vector<MemoryNote>{{NoteKind::kForward, *trace->strings.Find("GPT"), 0, Address()},
                               {NoteKind::kEnd, kNoText, 4, Address()}}));
}

TEST(TorchSnapshotReader, AMemoryFractionOfBeforeALostHeadIsKept) {
  Py sample = SampleSnapshot(Release::k210);
  Py limit = Py::Dict({{"device", 0},
                       {"end", 103},
                       {"kind", Py::List({0})},
                       {"place", Py::List({7})},
                       {"name", Py::List({0})},
                       {"address", Py::List({int64_t{1} << 34})}});
  sample["memreplay"] = Py::Dict({{"version", 1},
                                  {"kinds", Py::List({"memory_fraction"})},
                                  {"names", Py::List({"0.25"})},
                                  {"devices", Py::List({std::move(limit)})}});
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->devices[0].notes,
            (std::vector<MemoryNote>{{NoteKind::kFraction, *trace->strings.Find("0.25"), 0,
                                      Address(uint64_t{1} << 34)}}));
}

TEST(TorchSnapshotReader, NotesThatDoNotFitAreLeftOut) {
  for (const Py& notes :
       {SampleNotes(Py::List({1, 0, 2, 3}), 3), SampleNotes(Py::List({0, 1, 2, 4}), 3),
        SampleNotes(Py::List({0, 1, 2, 2}), 2)}) {
    Py sample = SampleSnapshot(Release::k210);
    sample["memreplay"] = notes;
    const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_TRUE(trace->devices[0].notes.empty());
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kMisplacedNotes), 1);
  }
  Py sample = SampleSnapshot(Release::k210);
  sample["memreplay"] = SampleNotes(Py::List({0, 1}), 3);
  EXPECT_TRUE(Contains(std::string(Read(PythonPickle(sample)).status().message()),
                       "'place' of the notes: expected 4 numbers, found 2"));
  sample["memreplay"] = Py::List({});
  EXPECT_TRUE(Contains(std::string(Read(PythonPickle(sample)).status().message()),
                       "'memreplay': expected a dict, found a list"));
}

TEST(TorchSnapshotReader, TheOrderOfAddressesIsOneOfTwoWords) {
  Py sample = SampleSnapshot(Release::k210);
  sample["memreplay"] = SampleNotes(Py::List({100, 101, 102, 103}), 103);
  EXPECT_FALSE(Read(PythonPickle(sample))->addresses_ascend.has_value());
  sample["memreplay"]["addresses"] = "up";
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->addresses_ascend, true);
  sample["memreplay"]["addresses"] = "left";
  EXPECT_TRUE(Contains(std::string(Read(PythonPickle(sample)).status().message()),
                       "expected 'up' or 'down' as 'addresses', found"));
}

TEST(TorchSnapshotReader, WhatEndedAScriptIsATextOfSomeLength) {
  Py sample = SampleSnapshot(Release::k210);
  EXPECT_EQ(Read(PythonPickle(sample))->ended, "");
  sample["memreplay_ended"] = "ValueError: too large";
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ended, "ValueError: too large");
  EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0);
  sample["memreplay_ended"] = std::string(1 << 20, 'x');
  EXPECT_EQ(Read(PythonPickle(sample))->ended.size(), 2000u);
  sample["memreplay_ended"] = 1;
  EXPECT_TRUE(Contains(std::string(Read(PythonPickle(sample)).status().message()),
                       "'memreplay_ended': expected a text, found"));
}

TEST(TorchSnapshotReader, UnknownKeysAreCountedByName) {
  Py sample = SampleSnapshot(Release::k210);
  Py& trace_list = sample["device_traces"].items[0];
  for (Py& entry : trace_list.items) entry["forward_frames"] = Py::List({Py::List({1})});
  sample["weather"] = Py::Dict({{"action", "rain"}});  // a lookalike that nobody uses
  sample["segments"].items[0]["color"] = "red";
  sample["segments"].items[0]["blocks"].items[0]["taste"] = 1;
  sample["allocator_settings"]["mood"] = 1;
  sample["external_annotations"].items[0]["extra"] = 1;
  trace_list.items[1]["frames"].items[0]["column"] = 3;
  for (const std::string& file : {PythonPickle(sample), CppPickle(sample), Json(sample)}) {
    const absl::StatusOr<Trace> trace = Read(file);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), kSampleEvents + 6);
    const auto places = trace->diagnostics.places(DiagnosticKind::kUnknownKey);
    ASSERT_EQ(places.size(), Diagnostics::kKeptPlaces);
    std::string details;
    for (const auto& place : places) {
      details += place.detail + ";";
      EXPECT_GT(place.position, 0u);
      EXPECT_LT(place.position, file.size());
    }
    EXPECT_TRUE(Contains(details, "key 'forward_frames' in a trace entry;")) << details;
  }
}

TEST(TorchSnapshotReader, FxKeysOfFramesAreKnown) {
  Py sample = SampleSnapshot(Release::k210);
  Py& frame = sample["device_traces"].items[0].items[1]["frames"].items[0];
  frame["fx_node_op"] = "call_function";
  frame["fx_node_name"] = "add";
  frame["fx_node_target"] = "aten.add";
  frame["fx_original_trace"] = "text";
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnknownKey), 0u);
}

TEST(TorchSnapshotReader, ActionsThatAreNotReplayedAreNotLostSilently) {
  Py sample = SampleSnapshot(Release::k28);
  Py& entries = sample["device_traces"].items[0];
  entries.items.insert(entries.items.begin() + 2,
                       Py::Dict({{"action", "user_defined"}, {"frames", Py::List({})}}));
  entries.items.push_back(Py::Dict({{"action", "annotate"}, {"time_us", 5}}));
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->devices[0].events.size(), kSampleEvents);
  EXPECT_EQ(trace->devices[0].time_us.size(), kSampleEvents);
  EXPECT_EQ(trace->devices[0].events[2].size, Bytes(1000));
  EXPECT_EQ(trace->diagnostics.count(DiagnosticKind::kUnsupportedAction), 2u);
  const auto places = trace->diagnostics.places(DiagnosticKind::kUnsupportedAction);
  EXPECT_EQ(places[0].position, 2u);
  EXPECT_EQ(places[0].detail, "action 'user_defined'");
  EXPECT_EQ(places[1].detail, "action 'annotate'");
}

TEST(TorchSnapshotReader, OneListAsTheTraceOfTwoDevicesIsTheTraceOfBoth) {
  // {"segments": [], "device_traces": [t, t]}, t one entry, listed from the memo.
  const std::string file(
      "\x80\x04\x95\x69\0\0\0\0\0\0\0}\x94(\x8c\x08segments\x94]\x94\x8c\x0d"
      "device_traces\x94]\x94(]\x94}\x94(\x8c\x06"
      "action\x94\x8c\x05"
      "alloc\x94\x8c\x04"
      "addr\x94K\x01\x8c\x04size\x94M\0\x02\x8c\x06stream\x94K\0\x8c\x06"
      "frames\x94]\x94uah\x05"
      "eu.",
      116);
  const absl::StatusOr<Trace> trace = Read(file);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->devices.size(), 2u);
  for (const DeviceTrace& device : trace->devices) {
    ASSERT_EQ(device.events.size(), 1u);
    EXPECT_EQ(device.events[0].size, Bytes(512));
  }
}

TEST(TorchSnapshotReader, SegmentsThatDoNotAddUp) {
  const auto mismatches = [](const Py& sample) -> uint64_t {
    const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
    return trace.ok() ? trace->diagnostics.count(DiagnosticKind::kSegmentSumMismatch) : 99;
  };
  const Py good = SampleSnapshot(Release::k25);
  EXPECT_EQ(mismatches(good), 0u);
  Py sample = good;
  sample["segments"].items[0]["total_size"] = 4194304;
  EXPECT_EQ(mismatches(sample), 1u);
  sample = good;
  sample["segments"].items[0]["blocks"].items[1]["address"] = int64_t{0x7f0000000a00};
  EXPECT_EQ(mismatches(sample), 1u);
  sample = good;
  sample["segments"].items[0]["allocated_size"] = 1;
  EXPECT_EQ(mismatches(sample), 1u);
  sample = good;
  sample["segments"].items[0]["active_size"] = 1;
  EXPECT_EQ(mismatches(sample), 1u);
}

TEST(TorchSnapshotReader, NumbersAreChecked) {
  const auto with_entry = [](const char* key, Py value) {
    Py sample = SampleSnapshot(Release::k25);
    sample["device_traces"].items[0].items[1][key] = std::move(value);
    return ErrorOf(sample);
  };
  const std::string negative = with_entry("size", -300);
  EXPECT_TRUE(Contains(negative, "f: trace entry 1 of device 0: byte ")) << negative;
  EXPECT_TRUE(Contains(negative,
                       "'size' of a trace entry: expected an integer from 0 to 2^64-1, "
                       "found the integer -300"))
      << negative;
  EXPECT_TRUE(Contains(with_entry("size", 1.5), "found the number 1.5"));
  EXPECT_TRUE(Contains(with_entry("size", true), "found True"));
  EXPECT_TRUE(Contains(with_entry("size", "300"), "found the string '300'"));
  EXPECT_TRUE(Contains(with_entry("size", Py()), "found None"));
  EXPECT_TRUE(Contains(with_entry("addr", Py::List({})), "found a list"));
  EXPECT_TRUE(Contains(with_entry("addr", -1), "found the integer -1"));
  EXPECT_TRUE(Contains(with_entry("stream", Py::Dict({})), "found a dict"));
  EXPECT_TRUE(Contains(with_entry("frames", 7), "expected a list of frames"));
  EXPECT_TRUE(Contains(with_entry("frames", Py::List({7})), "expected a frame (a dict)"));
  EXPECT_TRUE(Contains(with_entry("action", 7), "expected an action name"));
  EXPECT_TRUE(Contains(with_entry("time_us", 0.5), "expected an integer of 64 bits"));
  EXPECT_TRUE(Contains(with_entry("pool_id", Py::Tuple({1})), "expected a pair of integers"));
  EXPECT_EQ(with_entry("addr", ~uint64_t{0}), "read");  // 2^64-1 is exact and allowed
  EXPECT_EQ(with_entry("frames", Py()), "read");

  const auto with_segment = [](const char* key, Py value) {
    Py sample = SampleSnapshot(Release::k25);
    sample["segments"].items[0][key] = std::move(value);
    return ErrorOf(sample);
  };
  EXPECT_TRUE(Contains(with_segment("address", ~uint64_t{0}), "an end below 2^64"));
  EXPECT_TRUE(Contains(with_segment("device", 5000), "a device below 1024"));
  EXPECT_TRUE(Contains(with_segment("total_size", -1), "'total_size' of segment 0: expected"));
  EXPECT_TRUE(Contains(with_segment("segment_type", "huge"), "'large' or 'small'"));
  EXPECT_TRUE(Contains(with_segment("is_expandable", 1), "expected True or False"));
  EXPECT_TRUE(Contains(with_segment("blocks", 1), "expected a list"));

  const auto with_block = [](const char* key, Py value) {
    Py sample = SampleSnapshot(Release::k25);
    sample["segments"].items[0]["blocks"].items[1][key] = std::move(value);
    return ErrorOf(sample);
  };
  EXPECT_TRUE(Contains(with_block("size", -1), "block 1 of segment 0"));
  EXPECT_TRUE(Contains(with_block("state", "gone"), "found the string 'gone'"));
  EXPECT_TRUE(Contains(with_block("address", ~uint64_t{0}), "an end below 2^64"));
}

TEST(TorchSnapshotReader, AbsurdLineNumbersBecomeZero) {
  Py sample = SampleSnapshot(Release::k25);
  Py& frames = sample["device_traces"].items[0].items[1]["frames"];
  frames.items[0]["line"] = ~uint64_t{0};
  frames.items[1]["line"] = -1;
  const absl::StatusOr<Trace> trace = Read(PythonPickle(sample));
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto stack = trace->stacks[trace->devices[0].events[1].text_or_stack];
  EXPECT_EQ(trace->stacks.frame(stack[0]).line, 0u);
  EXPECT_EQ(trace->stacks.frame(stack[1]).line, 0u);
}

TEST(TorchSnapshotReader, MissingFieldsAreNamed) {
  const auto without = [](const char* action, const std::vector<std::pair<const char*, Py>>& rest) {
    Py entry = Py::Dict(rest);
    entry["action"] = action;
    return ErrorOf(Py::Dict({{"device_traces", Py::List({Py::List({entry})})}}));
  };
  EXPECT_EQ(without("alloc", {{"addr", 1}, {"size", 1}, {"stream", 0}}), "read");
  EXPECT_TRUE(Contains(without("alloc", {{"size", 1}, {"stream", 0}}), "(alloc) has no 'addr'"));
  EXPECT_TRUE(Contains(without("alloc", {{"addr", 1}, {"stream", 0}}), "has no 'size'"));
  EXPECT_TRUE(Contains(without("alloc", {{"addr", 1}, {"size", 1}}), "has no 'stream'"));
  EXPECT_TRUE(Contains(without("oom", {{"size", 1}, {"stream", 0}}), "has no 'device_free'"));
  EXPECT_TRUE(Contains(ErrorOf(Py::Dict({{"segments", Py::List({Py::Dict({{"address", 1}})})}})),
                       "segment 0 has no 'total_size'"));
}

TEST(TorchSnapshotReader, OtherPlainDataIsNoSnapshot) {
  EXPECT_TRUE(Contains(ErrorOf(Py::Dict({{"model", 1}})), "not a memory snapshot"));
  EXPECT_TRUE(Contains(ErrorOf(7), "expected a dict with 'segments'"));
  EXPECT_TRUE(Contains(ErrorOf(Py::List({7})), "segment 0: expected a dict, found"));
  EXPECT_TRUE(Contains(ErrorOf(Py::Dict({{"segments", 7}})), "expected a list"));
  EXPECT_TRUE(Contains(ErrorOf(Py::Dict({{"device_traces", Py::List({7})}})), "expected a list"));
  EXPECT_TRUE(Contains(ErrorOf(Py::Dict({{"action", "alloc"}})), "expected a dict with"));
}

TEST(TorchSnapshotReader, JsonIsExactAndStrict) {
  const std::string entry =
      R"({"action":"alloc","addr":18446744073709551615,"size":9007199254740993,"stream":0})";
  const absl::StatusOr<Trace> trace = Read("{ \"device_traces\": [[" + entry + "]] }\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->format, "torch_snapshot_json");
  EXPECT_EQ(trace->devices[0].events[0].address, Address(~uint64_t{0}));
  EXPECT_EQ(trace->devices[0].events[0].size, Bytes(9007199254740993));
  const std::string head = "{\"segments\": [], ";
  EXPECT_EQ(
      JsonErrorOf(head + R"("x": [1.5e3, -0, NaN, -Infinity, null, "\u00e9\ud83d\ude00\n"]})"),
      "read");
  EXPECT_TRUE(Contains(JsonErrorOf(head), "expected a key in quotes, found the end"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\" 1}"), "expected ':'"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": }"), "expected a value"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": [1 2]}"), "expected ',' or ']'"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": 1 \"y\"}"), "expected ',' or '}'"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": \"abc"), "expected a text with an end"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": \"\\q\"}"), "valid escapes"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": 01}"), "expected a value"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": 1-2}"), "expected a number"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": 1} 2"), "expected the end of the text"));
  EXPECT_TRUE(Contains(JsonErrorOf(head + "\"x\": " + std::string(2000, '[')), "less nesting"));
  const std::string truncated = Json(SampleSnapshot(Release::k25));
  for (size_t length = 100; length < truncated.size(); length += 7) {
    EXPECT_NE(JsonErrorOf(truncated.substr(0, length)), "read") << length;
  }
}

}  // namespace
}  // namespace memreplay
