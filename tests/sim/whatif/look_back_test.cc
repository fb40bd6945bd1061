// Tests looking back on runs, what streams cost, and what is live at the peak.
#include "sim/whatif/look_back.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/study/what_if.h"
#include "sim/whatif/stream_cost.h"
#include "sim/workload/peak_holdings.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

struct Subject {
  explicit Subject(Trace given)
      : trace(std::make_shared<const Trace>(std::move(given))),
        settings(*ResolveSettings(*trace, {})),
        study(std::make_shared<const Study>(Schedule::Build(trace, 0), settings)),
        schedule(study->schedule()) {}
  std::shared_ptr<const Trace> trace;
  ReplaySettings settings;
  std::shared_ptr<const Study> study;
  const Schedule& schedule;
};

Trace Mechanism(const std::string& name) {
  absl::StatusOr<Trace> trace = OpenTrace("examples/mechanisms/" + name + ".txtpb");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *std::move(trace);
}

Event Make(EventKind kind, uint64_t handle, Bytes size, uint32_t stream, uint32_t stack = 0) {
  Event event;
  event.kind = kind;
  event.address = Address(handle);
  event.size = size;
  event.stream = stream;
  event.text_or_stack = stack;
  return event;
}

// 60 MiB each on streams 0, 1 and 2, one after the other, and 30 MiB more on 0.
Trace ThreeStreams() {
  Trace trace;
  trace.is_program = true;
  trace.streams = {StreamHandle(0), StreamHandle(1), StreamHandle(2)};
  DeviceTrace& device = trace.devices.emplace_back();
  for (uint32_t stream = 0; stream < 3; ++stream) {
    device.events.push_back(Make(EventKind::kAlloc, stream + 1, MiB(60), stream));
    device.events.push_back(Make(EventKind::kFree, stream + 1, Bytes(), stream));
  }
  device.events.push_back(Make(EventKind::kAlloc, 4, MiB(60), 0));
  device.events.push_back(Make(EventKind::kAlloc, 5, MiB(30), 0));
  return trace;
}

TEST(CostOfStreams, EachOnItsOwn) {
  const Subject three(ThreeStreams());
  const absl::StatusOr<StreamCost> cost = CostOfStreams(three.schedule, three.settings);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->peak_reserved, MiB(60 * 3 + 30));
  EXPECT_EQ(cost->peak_reserved_one_stream, MiB(60 + 30));
  EXPECT_EQ(cost->main_stream, 0u);
  ASSERT_EQ(cost->merged.size(), 2u);
  EXPECT_EQ(cost->merged[0].stream, 1u);
  EXPECT_EQ(cost->merged[0].peak_reserved, MiB(60 * 2 + 30));
  EXPECT_EQ(cost->merged[1].stream, 2u);
  EXPECT_EQ(cost->merged[1].peak_reserved, MiB(60 * 2 + 30));
}

TEST(CostOfStreams, NoneOfASingleStream) {
  const Subject leak(Mechanism("leak"));
  const absl::StatusOr<StreamCost> cost = CostOfStreams(leak.schedule, leak.settings);
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->peak_reserved, cost->peak_reserved_one_stream);
  EXPECT_TRUE(cost->merged.empty());
}

// Megatron-LM#6885, made small: both streams hold what the other cannot use.
TEST(CostOfStreams, AStrayStream) {
  const Subject stray(Mechanism("stray_stream"));
  const absl::StatusOr<StreamCost> cost = CostOfStreams(stray.schedule, stray.settings);
  ASSERT_TRUE(cost.ok()) << cost.status();
  ASSERT_EQ(cost->merged.size(), 1u);
  EXPECT_EQ(cost->merged[0].peak_reserved, cost->peak_reserved_one_stream);
  EXPECT_GT(cost->peak_reserved, cost->peak_reserved_one_stream + GiB(2));
}

TEST(LookBackOn, TellsWhatAReplayTells) {
  const Subject leak(Mechanism("leak"));
  const absl::StatusOr<LookBack> look_back = LookBackOn(*leak.study);
  const absl::StatusOr<WhatIfResult> replay = ReplayWhatIf(leak.schedule, leak.settings);
  ASSERT_TRUE(look_back.ok() && replay.ok());
  EXPECT_EQ(look_back->peak, replay->peak);
  EXPECT_EQ(look_back->exact_until, replay->events);
  EXPECT_FALSE(look_back->diverged);
  ASSERT_LE(look_back->timeline.size(), kTimelineBuckets);
  Bytes reserved, split;
  for (const TimelineBucket& bucket : look_back->timeline) {
    reserved = std::max(reserved, bucket.Highest().reserved());
    split = std::max(split, bucket.highest_inactive_split);
  }
  EXPECT_EQ(reserved, replay->peak.reserved());
  EXPECT_EQ(split.signed_value(), replay->statistics.inactive_split_bytes.all.peak);
  ASSERT_EQ(look_back->holders.size(), 1u);
  EXPECT_EQ(look_back->holders[0].reserved, replay->peak.reserved());
}

// The recording began with 5 MiB live, which stay, and 3 MiB, which go.
Trace Late() {
  Trace trace;
  trace.streams = {StreamHandle(0)};
  DeviceTrace& device = trace.devices.emplace_back();
  const auto add = [&](EventKind kind, uint64_t offset, uint64_t mib) {
    device.events.push_back(Make(kind, 0x7f0000000000 + (offset << 20), MiB(mib), 0));
  };
  add(EventKind::kAlloc, 8, 4);
  add(EventKind::kFree, 5, 3);
  add(EventKind::kFreeCompleted, 5, 3);
  device.has_final_state = true;
  SegmentInfo& segment = device.final_state.emplace_back();
  segment.address = Address(0x7f0000000000);
  segment.total_size = MiB(20);
  segment.is_large = true;
  const auto block = [&](uint64_t offset, uint64_t mib, BlockState state) {
    BlockInfo info;
    info.address = Address(0x7f0000000000 + (offset << 20));
    info.size = MiB(mib);
    info.requested_size = state == BlockState::kInactive ? Bytes() : MiB(mib);
    info.state = state;
    segment.blocks.push_back(info);
  };
  block(0, 5, BlockState::kAllocated);
  block(5, 3, BlockState::kInactive);
  block(8, 4, BlockState::kAllocated);
  block(12, 8, BlockState::kInactive);
  return trace;
}

TEST(SeenWhereMostIsLive, CountsWhatWasThereBefore) {
  const Subject late(Late());
  const SeenAtPeak peak = SeenWhereMostIsLive(late.schedule);
  EXPECT_EQ(peak.live, MiB(5 + 3 + 4));
  EXPECT_EQ(peak.seen, MiB(4));
}

TEST(LookBackOn, ALateRecordingReplaysAsItHappened) {
  const Subject late(Late());
  const absl::StatusOr<LookBack> look_back = LookBackOn(*late.study);
  ASSERT_TRUE(look_back.ok()) << look_back.status();
  EXPECT_FALSE(look_back->diverged) << look_back->exactness_reason;
  EXPECT_EQ(look_back->exact_until, 3u);
  EXPECT_EQ(look_back->open_extents, 0u);  // the block behind shows where it ended
  EXPECT_EQ(look_back->peak.active(), MiB(12));
  ASSERT_EQ(look_back->holders.size(), 1u);
  EXPECT_EQ(look_back->holders[0].max_cached, MiB(12));  // at the begin
}

TEST(HoldingsAtPeak, ByStack) {
  Trace trace;
  trace.is_program = true;
  trace.streams = {StreamHandle(0)};
  DeviceTrace& device = trace.devices.emplace_back();
  for (uint32_t i = 1; i <= 2; ++i) {
    const uint32_t frame =
        trace.stacks.InternFrame({trace.strings.Intern("f"), trace.strings.Intern("g"), i});
    ASSERT_EQ(trace.stacks.InternStack({&frame, 1}), i);
  }
  device.events = {Make(EventKind::kAlloc, 1, MiB(4), 0, 1),
                   Make(EventKind::kAlloc, 2, MiB(5), 0, 2),
                   Make(EventKind::kAlloc, 3, MiB(3), 0, 1), Make(EventKind::kFree, 2, Bytes(), 0),
                   Make(EventKind::kAlloc, 4, MiB(5), 0, 2)};  // as high again: not the first
  const Subject subject(std::move(trace));
  const PeakHoldings peak = HoldingsAtPeak(subject.schedule);
  EXPECT_EQ(peak.requested, MiB(12));
  EXPECT_EQ(peak.request, 2u);
  ASSERT_EQ(peak.stacks.size(), 2u);
  EXPECT_EQ(peak.stacks[0].stack, 1u);
  EXPECT_EQ(peak.stacks[0].requested, MiB(7));
  EXPECT_EQ(peak.stacks[0].allocations, 2u);
  EXPECT_EQ(peak.stacks[1].requested, MiB(5));
}

TEST(HoldingsAtPeak, ARefusedRequestIsNotLive) {
  Trace trace;
  trace.streams = {StreamHandle(0)};
  DeviceTrace& device = trace.devices.emplace_back();
  device.events = {Make(EventKind::kAlloc, 0x7f0000000000, MiB(4), 0),
                   Make(EventKind::kOom, 0, MiB(9), 0),
                   Make(EventKind::kAlloc, 0x7f0000800000, MiB(3), 0)};
  const Subject subject(std::move(trace));
  EXPECT_EQ(HoldingsAtPeak(subject.schedule).requested, MiB(7));
}

TEST(HoldingsAtPeak, OfNothing) {
  Trace trace;
  trace.devices.emplace_back();
  const Subject nothing(std::move(trace));
  EXPECT_EQ(HoldingsAtPeak(nothing.schedule).requested, Bytes());
  EXPECT_TRUE(HoldingsAtPeak(nothing.schedule).stacks.empty());
}

}  // namespace
}  // namespace memreplay
