#include "sim/study/what_if.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "sim/recording/sampled_replay.h"
#include "sim/study/study.h"

namespace memreplay {
namespace {

class Recorder final : public Observer {
 public:
  void OnEvent(const Event& event) override { events.push_back(event); }
  std::vector<Event> events;
};

Event Make(EventKind kind, uint64_t address, uint64_t size) {
  Event event;
  event.kind = kind;
  event.address = Address(address);
  event.size = Bytes(size);
  return event;
}

constexpr uint64_t kBase = 0x500000000000;

// A warm recording: a segment of 30 MiB with a live block of 12 MiB and a
// cached one of 18 MiB; 16 MiB are taken from the latter, then a snapshot is
// made, then the live block is freed.
std::shared_ptr<const Trace> WarmRecording(bool expandable = false) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  DeviceTrace& device = trace->devices.emplace_back();
  device.events = {
      Make(EventKind::kAlloc, kBase + (12 << 20), 16 << 20),
      Make(EventKind::kSnapshot, 0, 28 << 20),
      Make(EventKind::kFree, kBase, 12 << 20),
      Make(EventKind::kFreeCompleted, kBase, 12 << 20),
  };
  device.has_final_state = true;
  SegmentInfo& segment = device.final_state.emplace_back();
  segment.address = Address(kBase);
  segment.total_size = MiB(30);
  segment.is_large = true;
  segment.is_expandable = expandable;
  const auto add = [&segment](uint64_t offset, uint64_t mib, BlockState state) {
    BlockInfo& block = segment.blocks.emplace_back();
    block.address = Address(kBase + (offset << 20));
    block.size = block.requested_size = MiB(mib);
    block.state = state;
  };
  add(0, 12, BlockState::kInactive);
  add(12, 16, BlockState::kAllocated);
  add(28, 2, BlockState::kInactive);
  segment.blocks.back().requested_size = Bytes(0);
  return trace;
}

std::shared_ptr<const Trace> Program(std::vector<Event> events) {
  auto trace = std::make_shared<Trace>();
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  trace->devices.emplace_back().events = std::move(events);
  return trace;
}

ReplaySettings Settings(const Trace& trace, const SettingsRequest& request) {
  auto settings = ResolveSettings(trace, request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return *std::move(settings);
}

TEST(ReplayWhatIf, SameSettingsGiveTheRecordedPeaks) {
  const auto trace = WarmRecording();
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.conf = "";
  const auto result = ReplayWhatIf(schedule, Settings(*trace, request));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->start, StartPolicy::kRecorded);
  EXPECT_EQ(result->peak.reserved(), MiB(30));
  EXPECT_EQ(result->peak.allocated(), MiB(28));
  EXPECT_EQ(result->run.ooms, 0u);
  ASSERT_EQ(result->segments.size(), 1u);
  EXPECT_EQ(result->segments[0].blocks.size(), 3u);
}

TEST(ReplayWhatIf, FreshStartForgetsWhatWasCached) {
  const auto trace = WarmRecording();
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.conf = "";
  WhatIfOptions options;
  options.start = StartPolicy::kFresh;
  Recorder recorder;
  const auto result = ReplayWhatIf(schedule, Settings(*trace, request), &recorder, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->start, StartPolicy::kFresh);
  EXPECT_TRUE(result->start_note.empty());
  EXPECT_EQ(result->peak.reserved(), MiB(28));  // 12 and 16 MiB, a segment each
  // What sets up the start is not part of the run.
  ASSERT_FALSE(recorder.events.empty());
  EXPECT_EQ(recorder.events[0].kind, EventKind::kSegmentAlloc);
  EXPECT_EQ(recorder.events[0].size, MiB(16));
}

TEST(ReplayWhatIf, SaysWhyTheRecordedStartCannotBe) {
  const auto trace = WarmRecording();
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.capacity = MiB(28);
  const auto small = ReplayWhatIf(schedule, Settings(*trace, request));
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->start, StartPolicy::kFresh);
  EXPECT_EQ(small->start_note, "the device cannot hold the segments that the recording began with");
  EXPECT_EQ(small->run.ooms, 0u);

  // Not even what was live fits: running out before the first request counts.
  request.capacity = MiB(10);
  const auto smaller = ReplayWhatIf(schedule, Settings(*trace, request));
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_EQ(smaller->run.ooms, 2u);

  const auto mapped = WarmRecording(/*expandable=*/true);
  const Schedule mapped_schedule = Schedule::Build(mapped, 0);
  request = {};
  request.conf = "";
  const auto result = ReplayWhatIf(mapped_schedule, Settings(*mapped, request));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->start, StartPolicy::kFresh);
  EXPECT_EQ(result->start_note, "the recording began with expandable segments");
}

TEST(ReplayWhatIf, ChangesOfSettingsStayAndRestoringOnesGoBackToTheAskedSettings) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  DeviceTrace& device = trace->devices.emplace_back();
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t address = kBase + i * (20 << 20);
    device.events.push_back(Make(EventKind::kSegmentAlloc, address, 20 << 20));
    device.events.push_back(Make(EventKind::kAlloc, address, (5 << 20) + 1));
  }
  const auto note = [&](uint64_t event, const char* conf) {
    MemoryNote& made = device.notes.emplace_back();
    made.kind = NoteKind::kSettings;
    made.event = event;
    made.name = trace->strings.Intern(conf);
  };
  note(0, "");
  note(2, "max_split_size_mb:20");
  note(4, "");
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.conf = "roundup_power2_divisions:2";
  request.torch = "2.15";
  Recorder recorder;
  const auto result = ReplayWhatIf(schedule, Settings(*trace, request), &recorder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->run.failures.empty());
  std::vector<Bytes> blocks;
  for (const Event& event : recorder.events) {
    if (event.kind == EventKind::kAlloc) blocks.push_back(event.block_size);
  }
  EXPECT_EQ(blocks, (std::vector<Bytes>{MiB(6), MiB(5) + Bytes(512), MiB(6)}));
}

TEST(ReplayWhatIf, AMemoryFractionIsOfTheRecordedGpuUnlessAnotherIsAskedFor) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  DeviceTrace& device = trace->devices.emplace_back();
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t address = kBase + i * (20 << 20);
    device.events.push_back(Make(EventKind::kSegmentAlloc, address, 20 << 20));
    device.events.push_back(Make(EventKind::kAlloc, address, 20 << 20));
  }
  device.notes.push_back({NoteKind::kFraction, 0, 4, Address(MiB(100).value())});
  GpuLimits card;
  card.total = MiB(100);
  const auto ooms = [&](std::string_view fraction, const SettingsRequest& request) {
    device.notes.back().name = trace->strings.Intern(fraction);
    const ReplaySettings settings = OnRecordedGpu(Settings(*trace, request), card);
    const auto result = ReplayWhatIf(Schedule::Build(trace, 0), settings);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->run.ooms;
  };
  EXPECT_EQ(ooms("0.6", {}), 0u);
  EXPECT_EQ(ooms("0.5", {}), 1u);
  EXPECT_EQ(ooms("0.3", {}), 1u);  // below what is in use
  SettingsRequest larger;
  larger.capacity = MiB(120);
  EXPECT_EQ(ooms("0.5", larger), 0u);
  SettingsRequest unlimited;
  unlimited.unlimited = true;
  EXPECT_EQ(ooms("0.5", unlimited), 0u);
}

TEST(ReplayWhatIf, SamplesFragmentationWhereReservedPeaks) {
  const auto trace =
      Program({Make(EventKind::kAlloc, 1, 30 << 20), Make(EventKind::kFree, 1, 0),
               Make(EventKind::kAlloc, 2, 8 << 20), Make(EventKind::kAlloc, 3, 40 << 20),
               Make(EventKind::kFree, 3, 0), Make(EventKind::kEmptyCache, 0, 0)});
  const Schedule schedule = Schedule::Build(trace, 0);
  WhatIfOptions options;
  EXPECT_FALSE(ReplayWhatIf(schedule, Settings(*trace, {}), nullptr, options)->fragmentation);
  options.fragmentation = true;
  Recorder recorder;
  const auto result = ReplayWhatIf(schedule, Settings(*trace, {}), &recorder, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->peak.reserved(), MiB(70));
  ASSERT_TRUE(result->fragmentation.has_value());
  EXPECT_EQ(result->fragmentation->usage.reserved(), MiB(70));
  EXPECT_EQ(result->fragmentation->unused, MiB(22));
  // The second run, for the sample, is not observed.
  EXPECT_EQ(recorder.events.size(), result->events);
}

TEST(ReplayWhatIf, CapacityAndFractionLimit) {
  const auto trace =
      Program({Make(EventKind::kAlloc, 1, 30 << 20), Make(EventKind::kAlloc, 2, 30 << 20)});
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.capacity = MiB(100);
  EXPECT_EQ(ReplayWhatIf(schedule, Settings(*trace, request))->run.ooms, 0u);
  request.fraction = 0.5;
  EXPECT_EQ(ReplayWhatIf(schedule, Settings(*trace, request))->run.ooms, 1u);
}

TEST(ReplayWhatIf, WorkThatCompletedLateCompletesAtOnceIfAsked) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  trace->devices.emplace_back().events = {
      Make(EventKind::kSegmentAlloc, kBase, 20 << 20),
      Make(EventKind::kAlloc, kBase, 20 << 20),
      Make(EventKind::kFree, kBase, 20 << 20),
      Make(EventKind::kSegmentAlloc, kBase + (20 << 20), 20 << 20),
      Make(EventKind::kAlloc, kBase + (20 << 20), 20 << 20),
      Make(EventKind::kFreeCompleted, kBase, 20 << 20),
  };
  const Schedule schedule = Schedule::Build(trace, 0);
  WhatIfOptions options;
  EXPECT_EQ(ReplayWhatIf(schedule, Settings(*trace, {}), nullptr, options)->peak.reserved(),
            MiB(40));
  options.complete_at_once = true;
  const auto at_once = ReplayWhatIf(schedule, Settings(*trace, {}), nullptr, options);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_EQ(at_once->peak.reserved(), MiB(20)) << "the second takes the first one's block";
}

TEST(ReplaySampled, EchoesSnapshotsInTheirPlace) {
  const auto trace = WarmRecording();
  const Schedule schedule = Schedule::Build(trace, 0);
  Recorder recorder;
  const SampledReplay replay = ReplaySampled(schedule, Settings(*trace, {}), &recorder);
  EXPECT_FALSE(replay.exact.first_divergence.has_value()) << replay.exact.exactness_reason;
  EXPECT_EQ(replay.peak.reserved(), MiB(30));
  EXPECT_EQ(replay.peak.active(), MiB(28));
  ASSERT_TRUE(replay.fragmentation.has_value());
  // All 30 MiB are there before the first event, with 12 in use; after it 28 are.
  EXPECT_EQ(replay.fragmentation->at_event, 0u);
  EXPECT_EQ(replay.fragmentation->unused, MiB(2));
  ASSERT_EQ(recorder.events.size(), schedule.recorded().size());
  for (size_t i = 0; i < recorder.events.size(); ++i) {
    EXPECT_EQ(recorder.events[i].kind, schedule.recorded()[i].kind) << i;
    EXPECT_EQ(recorder.events[i].address, schedule.recorded()[i].address) << i;
    EXPECT_EQ(recorder.events[i].size, schedule.recorded()[i].size) << i;
  }
}

}  // namespace
}  // namespace memreplay
