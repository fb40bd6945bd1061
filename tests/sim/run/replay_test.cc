#include "sim/run/replay.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/settings/torch_profile.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

constexpr Address kOld = Address(0x10000000);

class Starts final : public Observer {
 public:
  void OnStartEvent(const Event& event) override { events.push_back(event.kind); }
  void OnStart(const MemoryState& start, const Allocator& /*allocator*/) override { state = start; }
  void OnEvent(const Event& /*event*/) override {}
  std::vector<EventKind> events;
  MemoryState state;
};

absl::StatusOr<ReplayResult> ReplayOn(Device& device, const Schedule& schedule, ReplayPlan plan,
                                      Observer& observer) {
  const AllocatorConfig config;
  plan.schedule = &schedule;
  plan.profile = *FindTorchProfile("2.15");
  plan.config = &config;
  return Replay(plan, device, observer);
}

// A segment of 20 MiB whose first 8 MiB are live.
MemoryState HalfFull() {
  SegmentInfo segment;
  segment.address = kOld;
  segment.total_size = MiB(20);
  segment.is_large = true;
  segment.blocks.resize(2);
  segment.blocks[0] = {kOld, MiB(8), MiB(8), BlockState::kAllocated, 0};
  segment.blocks[1] = {kOld + MiB(8), MiB(12), Bytes(0), BlockState::kInactive};
  return {segment};
}

TEST(Replay, BackendsReserveWhatIsTheirs) {
  testing::Recording program;
  program.trace().is_program = true;
  const Schedule schedule = program.Alloc(1, 5 << 20).Build();
  for (const auto& [backend, reserved] :
       {std::pair{RunBackend::kNative, MiB(20)}, {RunBackend::kDirect, MiB(5)}}) {
    SimulatedDevice device(GiB(1));
    Starts observer;
    const auto result = ReplayOn(device, schedule, {.backend = backend}, observer);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->segments.size(), 1u);
    EXPECT_EQ(result->segments[0].total_size, reserved);
  }
  SimulatedDevice device(GiB(1));
  Starts observer;
  const auto result = ReplayOn(device, schedule, {.backend = RunBackend::kAsync}, observer);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->run.ooms, 0u);
}

TEST(Replay, StartsFromTheRecordedSegmentsOrFromWhatWasLive) {
  const Schedule schedule =
      testing::Recording().Free(kOld.value(), 8 << 20).Segment(kOld.value(), 20 << 20).Build();
  const MemoryState start = HalfFull();
  for (const StartPolicy policy : {StartPolicy::kRecorded, StartPolicy::kFresh}) {
    SimulatedDevice device(GiB(1));
    Starts observer;
    const auto result = ReplayOn(device, schedule, {.start = {policy, &start}}, observer);
    ASSERT_TRUE(result.ok()) << result.status();
    if (policy == StartPolicy::kRecorded) {
      ASSERT_EQ(observer.state.size(), 1u);
      EXPECT_EQ(observer.state[0].blocks.size(), 2u);
      EXPECT_TRUE(observer.events.empty());
    } else {
      EXPECT_TRUE(observer.state.empty());
      EXPECT_EQ(observer.events,
                (std::vector<EventKind>{EventKind::kSegmentAlloc, EventKind::kAlloc}));
    }
    ASSERT_EQ(result->segments.size(), 1u);  // it is cached, in one piece
    EXPECT_EQ(result->segments[0].total_size, MiB(20));
    EXPECT_EQ(result->segments[0].blocks.size(), 1u);
  }
}

TEST(Replay, RefusesAFractionThatIsNone) {
  testing::Recording program;
  program.trace().is_program = true;
  SimulatedDevice device(GiB(1));
  Starts observer;
  EXPECT_FALSE(ReplayOn(device, program.Alloc(1, 512).Build(), {.fraction = 1.5}, observer).ok());
}

TEST(CompletesExplicitly, ARecordingDoesAndAProgramSaysIt) {
  EXPECT_TRUE(CompletesExplicitly(testing::Recording().Alloc(kOld.value(), 512).Build()));
  testing::Recording program;
  program.trace().is_program = true;
  EXPECT_FALSE(CompletesExplicitly(program.Alloc(1, 512).Build()));
  program.trace().completion = Completion::kExplicit;
  EXPECT_TRUE(CompletesExplicitly(program.Build()));
}

TEST(RelocateSegments, BlocksStayInTheirPlace) {
  SimulatedDevice device(GiB(1));
  const absl::StatusOr<MemoryState> moved = RelocateSegments(HalfFull(), device);
  ASSERT_TRUE(moved.ok()) << moved.status();
  ASSERT_EQ(moved->size(), 1u);
  const SegmentInfo& segment = moved->front();
  EXPECT_NE(segment.address, kOld);
  EXPECT_EQ(segment.total_size, MiB(20));
  EXPECT_EQ(segment.blocks[0].address, segment.address);
  EXPECT_EQ(segment.blocks[1].address, segment.address + MiB(8));
  EXPECT_EQ(device.FreeMemory(), GiB(1) - MiB(20));
}

TEST(RelocateSegments, SaysWhatCannotBe) {
  SimulatedDevice small(MiB(10));
  EXPECT_TRUE(absl::IsResourceExhausted(RelocateSegments(HalfFull(), small).status()));
  MemoryState expandable = HalfFull();
  expandable[0].is_expandable = true;
  SimulatedDevice device(GiB(1));
  EXPECT_TRUE(absl::IsUnimplemented(RelocateSegments(expandable, device).status()));
}

}  // namespace
}  // namespace memreplay
