// Tests identities, start allocations, and every diagnostic of the builder. What is inferred
// (empty_cache, record_stream) is in schedule_inference_test.cc.
#include "trace/schedule/schedule.h"

#include "gtest/gtest.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

using testing::Begins;
using testing::Recording;
using testing::RequestsText;

constexpr uint64_t kM = 1 << 20;
constexpr uint64_t kA = 0x7f0000000000;

uint64_t Count(const Schedule& schedule, DiagnosticKind kind) {
  return schedule.diagnostics().count(kind);
}

TEST(ScheduleRecordedTest, ColdTraceGetsDenseIdsInOrderOfAppearance) {
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 100)
                                .Alloc(kA + 512, 200)
                                .Free(kA, 100)
                                .Alloc(kA, 300)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 300)
                                .Block(512, 200)
                                .FreeBlock(2 * kM - 1024, 100)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 alloc#1 free_requested#0 alloc#2");
  EXPECT_EQ(Begins(schedule), (std::vector<uint32_t>{0, 2, 3, 5}));
  EXPECT_EQ(schedule.allocation_count(), 3);
  EXPECT_TRUE(schedule.is_cold());
  EXPECT_TRUE(schedule.start_allocations().empty());
  EXPECT_TRUE(schedule.diagnostics().empty());
  ASSERT_NE(schedule.final_state(), nullptr);
  EXPECT_EQ(schedule.final_state()->front().blocks[0].id, 2u);
  EXPECT_EQ(schedule.final_state()->front().blocks[1].id, 1u);
  EXPECT_EQ(schedule.final_state()->front().blocks[2].id, kNoAllocation);
  // The recording keeps its addresses and gets the ids; requests have none.
  EXPECT_EQ(schedule.recorded()[4].kind, EventKind::kFreeCompleted);
  EXPECT_EQ(schedule.recorded()[4].id, 0u);
  EXPECT_EQ(schedule.recorded()[4].address, Address(kA));
  for (const Event& request : schedule.requests()) EXPECT_TRUE(request.address.is_null());
  EXPECT_EQ(schedule.requests()[1].size, Bytes(200));
}

TEST(ScheduleRecordedTest, BlocksFreedOfUnknownAddressWereLiveAtTheStart) {
  const Schedule schedule = Recording()
                                .Stream(1)
                                .Free(kA + 512, 200)
                                .Alloc(kA + 512, 100)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 77)
                                .Block(512, 100)
                                .FreeBlock(2 * kM - 1024)
                                .Build();
  EXPECT_FALSE(schedule.is_cold());
  ASSERT_EQ(schedule.start_allocations().size(), 2u);
  const StartAllocation& kept = schedule.start_allocations()[0];
  EXPECT_EQ(kept.address, Address(kA));
  EXPECT_EQ(kept.requested_size, Bytes(77));
  EXPECT_EQ(kept.block_size, Bytes(512));
  EXPECT_EQ(kept.stream, 1u);
  const StartAllocation& freed = schedule.start_allocations()[1];
  EXPECT_EQ(freed.address, Address(kA + 512));
  EXPECT_EQ(freed.requested_size, Bytes(200));
  EXPECT_EQ(freed.block_size, std::nullopt);
  EXPECT_EQ(freed.id, schedule.requests()[0].id);
  EXPECT_EQ(Count(schedule, DiagnosticKind::kFreeOfUnknownAddress), 1u);
  EXPECT_EQ(Count(schedule, DiagnosticKind::kLostHead), 1u);
  EXPECT_FALSE(schedule.diagnostics().has_errors());
}

TEST(ScheduleRecordedTest, SizesOfTheStartHaveASum) {
  Recording recording;
  for (uint64_t i = 0; i < 600; ++i) recording.Free(kA + i * 512, (uint64_t{1} << 63) - 512);
  const Schedule schedule = recording.Free(kA + 600 * 512, 100).Build();
  int64_t sum = 0;
  ASSERT_EQ(schedule.start_allocations().size(), 601u);
  for (const StartAllocation& start : schedule.start_allocations()) {
    ASSERT_FALSE(__builtin_add_overflow(sum, start.requested_size.signed_value(), &sum));
  }
  EXPECT_EQ(schedule.start_allocations()[0].requested_size, kMaxDeviceMemory);
  EXPECT_EQ(sum, (kAddressesEnd - Address()).signed_value());
}

TEST(ScheduleRecordedTest, SegmentsWithoutLiveBlocksAtTheStartAreWarmToo) {
  const Schedule schedule = Recording()
                                .Alloc(kA, 100)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 100)
                                .FreeBlock(2 * kM - 512)
                                .Build();
  EXPECT_FALSE(schedule.is_cold());
  EXPECT_TRUE(schedule.start_allocations().empty());
  EXPECT_EQ(Count(schedule, DiagnosticKind::kLostHead), 1u);
}

TEST(ScheduleRecordedTest, SegmentReleasedInTheTraceCountsForTheStart) {
  const Schedule schedule = Recording().SegmentFree(kA, 20 * kM).NoSegments().Build();
  EXPECT_FALSE(schedule.is_cold());
}

TEST(ScheduleRecordedTest, WithoutFinalStateTheFirstSegmentDecides) {
  EXPECT_TRUE(Recording().SegmentAlloc(kA, 2 * kM).Alloc(kA, 1).Build().is_cold());
  EXPECT_FALSE(Recording().Alloc(kA, 1).Build().is_cold());
}

TEST(ScheduleRecordedTest, BlockActiveAtTheEndButFreedInTheTraceIsNoStartAllocation) {
  // The recording stopped before the snapshot was taken.
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 100)
                                .Free(kA, 100)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 300)
                                .FreeBlock(2 * kM - 512)
                                .Build();
  EXPECT_TRUE(schedule.start_allocations().empty());
  EXPECT_EQ(schedule.final_state()->front().blocks[0].id, kNoAllocation);
}

TEST(ScheduleRecordedTest, NoTraceMakesEveryActiveBlockAStartAllocation) {
  const Schedule schedule = Recording()
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 100)
                                .FreeBlock(1024)
                                .Block(2 * kM - 1536, 9, BlockState::kPendingFree)
                                .Build();
  ASSERT_EQ(schedule.start_allocations().size(), 2u);
  EXPECT_EQ(schedule.start_allocations()[1].state, BlockState::kPendingFree);
  EXPECT_EQ(schedule.start_allocations()[1].pending_stream, 3u);  // after the trace's three
  EXPECT_EQ(schedule.stream_count(), 4u);
  EXPECT_TRUE(schedule.requests().empty());
  EXPECT_EQ(Count(schedule, DiagnosticKind::kLostHead), 0u);  // nothing was recorded to be lost
}

TEST(ScheduleRecordedTest, OutOfMemoryIsAnAllocOfTheRoundedSize) {
  const Schedule schedule =
      Recording().SegmentAlloc(kA, 2 * kM).Alloc(kA, 5).Oom(7 * kM, 30 * kM).NoSegments().Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 alloc#1");
  EXPECT_EQ(schedule.requests()[1].size, Bytes(30 * kM));
  EXPECT_EQ(schedule.recorded()[2].id, 1u);
}

TEST(ScheduleRecordedTest, SnapshotsAreEffectsOfNoRequest) {
  const Schedule schedule = Recording()
                                .Snapshot(0)
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 5)
                                .Snapshot(512)
                                .Free(kA, 5)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 free_requested#0");
  EXPECT_EQ(Begins(schedule), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(schedule.recorded().size(), 6u);
}

TEST(ScheduleRecordedTest, AllocOverALiveBlockIsAnError) {
  const Schedule schedule =
      Recording().SegmentAlloc(kA, 2 * kM).Alloc(kA, 5).Alloc(kA, 6).Free(kA, 6).Build();
  EXPECT_EQ(Count(schedule, DiagnosticKind::kAllocOverLiveBlock), 1u);
  EXPECT_EQ(schedule.diagnostics().places(DiagnosticKind::kAllocOverLiveBlock)[0].position, 2u);
  EXPECT_TRUE(schedule.diagnostics().has_errors());
  EXPECT_EQ(RequestsText(schedule), "alloc#0 alloc#1 free_requested#1");
}

TEST(ScheduleRecordedTest, AllocOutsideEverySegment) {
  const auto recording = [](uint64_t address, uint64_t size) {
    return Recording()
        .SegmentAlloc(kA, 2 * kM)
        .Alloc(kA, 5)
        .Alloc(address, size)
        .SegmentAlloc(kA + 4 * kM, 2 * kM)
        .NoSegments()
        .Build();
  };
  EXPECT_EQ(Count(recording(kA + 512, 5), DiagnosticKind::kAllocOutsideSegments), 0u);
  EXPECT_EQ(Count(recording(kA + 4 * kM, 5), DiagnosticKind::kAllocOutsideSegments), 0u);
  EXPECT_EQ(Count(recording(kA + 2 * kM, 5), DiagnosticKind::kAllocOutsideSegments), 1u);
  EXPECT_EQ(Count(recording(kA + kM, kM + 1), DiagnosticKind::kAllocOutsideSegments), 1u);
  EXPECT_EQ(Count(recording(kA - 512, 5), DiagnosticKind::kAllocOutsideSegments), 1u);
  EXPECT_EQ(Count(recording(0, 0), DiagnosticKind::kAllocOutsideSegments), 1u);
}

TEST(ScheduleRecordedTest, CompletionWithoutRequestFreesTheBlock) {
  const Schedule schedule =
      Recording().SegmentAlloc(kA, 2 * kM).Alloc(kA, 5).FreeCompleted(kA, 5).Alloc(kA, 7).Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 free_requested#0 alloc#1");
  EXPECT_EQ(Begins(schedule), (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(Count(schedule, DiagnosticKind::kFreeCompletedWithoutRequest), 1u);
}

TEST(ScheduleRecordedTest, SecondFreeOfAPendingBlockIsSkipped) {
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 5)
                                .FreeRequested(kA, 5)
                                .FreeRequested(kA, 5)
                                .FreeCompleted(kA, 5)
                                .Alloc(kA, 7)
                                .Build();
  EXPECT_EQ(Count(schedule, DiagnosticKind::kFreeOfUnknownAddress), 1u);
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 record_stream#0@3 free_requested#0 stream_done@3 alloc#1");
}

// --- Programs: addresses are handles ---

Recording Program() {
  Recording recording;
  recording.trace().is_program = true;
  return recording;
}

TEST(ScheduleProgramTest, HandlesMayBeReusedOnceFreed) {
  const Schedule schedule =
      Program().Alloc(7, 100).FreeRequested(7, 0).Alloc(7, 200).FreeRequested(7, 0).Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 free_requested#0 alloc#1 free_requested#1");
  EXPECT_TRUE(schedule.diagnostics().empty());
  EXPECT_TRUE(schedule.is_cold());
  EXPECT_TRUE(schedule.recorded().empty());
  EXPECT_TRUE(schedule.recorded_begin().empty());
  EXPECT_EQ(schedule.final_state(), nullptr);
  EXPECT_TRUE(schedule.requests()[0].address.is_null());
}

TEST(ScheduleProgramTest, UsesOfDeadHandlesAreDroppedAndReported) {
  const Schedule schedule = Program()
                                .Alloc(7, 100)
                                .FreeRequested(7, 0)
                                .FreeRequested(7, 0)
                                .Add(EventKind::kRecordStream, 7, 0)
                                .FreeRequested(8, 0)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 free_requested#0");
  EXPECT_EQ(Count(schedule, DiagnosticKind::kFreeOfDeadHandle), 3u);
  EXPECT_EQ(schedule.diagnostics().places(DiagnosticKind::kFreeOfDeadHandle)[2].position, 4u);
  EXPECT_TRUE(schedule.diagnostics().has_errors());
}

TEST(ScheduleProgramTest, AllocOfALiveHandleLeavesTheOlderOneLive) {
  const Schedule schedule = Program().Alloc(7, 100).Alloc(7, 200).FreeRequested(7, 0).Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 alloc#1 free_requested#1");
  EXPECT_EQ(Count(schedule, DiagnosticKind::kAllocOfLiveHandle), 1u);
  EXPECT_EQ(Count(schedule, DiagnosticKind::kLeak), 1u);
}

TEST(ScheduleProgramTest, LeaksAreReportedInOrderOfAllocation) {
  const Schedule schedule =
      Program().Alloc(9, 1).Alloc(3, 1).Alloc(5, 1).FreeRequested(3, 0).Build();
  EXPECT_EQ(Count(schedule, DiagnosticKind::kLeak), 2u);
  EXPECT_EQ(schedule.diagnostics().places(DiagnosticKind::kLeak)[0].position, 0u);
  EXPECT_EQ(schedule.diagnostics().places(DiagnosticKind::kLeak)[1].position, 2u);
  EXPECT_FALSE(schedule.diagnostics().has_errors());
}

TEST(ScheduleProgramTest, OtherRequestsPassThroughAndEffectsDoNot) {
  const Schedule schedule = Program()
                                .Alloc(1, 100)
                                .SegmentAlloc(kA, 2 * kM)
                                .Add(EventKind::kRecordStream, 1, 0)
                                .Add(EventKind::kEmptyCache, 0, 0)
                                .Add(EventKind::kMark, 1, static_cast<uint64_t>(MarkKind::kRetag))
                                .Add(EventKind::kMark, 0, static_cast<uint64_t>(MarkKind::kPhase))
                                .Add(EventKind::kOutsideAlloc, 2, 5)
                                .Add(EventKind::kOutsideFree, 2, 5)
                                .FreeRequested(1, 0)
                                .Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 record_stream#0@0 empty_cache mark#0 mark outside_alloc outside_free "
            "free_requested#0");
  EXPECT_TRUE(schedule.diagnostics().empty());
}

}  // namespace
}  // namespace memreplay
