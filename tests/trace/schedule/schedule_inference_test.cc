// Tests what PyTorch does not record and the builder infers: empty_cache from released segments,
// record_stream and its end from late completions.
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "tests/trace/support/recording.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

using testing::Begins;
using testing::Recording;
using testing::RequestsText;

constexpr uint64_t kM = 1 << 20;
constexpr uint64_t kA = 0x7f0000000000;
constexpr uint64_t kB = 0x7f1000000000;
constexpr uint64_t kC = 0x7f2000000000;

// Two cached segments of 20 MiB.
Recording TwoCached() {
  return Recording()
      .SegmentAlloc(kA, 20 * kM)
      .Alloc(kA, 20 * kM)
      .SegmentAlloc(kB, 20 * kM)
      .Alloc(kB, 20 * kM)
      .Free(kA, 20 * kM)
      .Free(kB, 20 * kM);
}
constexpr char kTwoCached[] = "alloc#0 alloc#1 free_requested#0 free_requested#1";

TEST(InferEmptyCacheTest, ReleasesAtTheEnd) {
  const Schedule schedule = TwoCached().SegmentFree(kA, 20 * kM).SegmentFree(kB, 20 * kM).Build();
  EXPECT_EQ(RequestsText(schedule), absl::StrCat(kTwoCached, " empty_cache"));
  EXPECT_EQ(schedule.recorded_begin().back(), 8u);
  EXPECT_EQ(schedule.diagnostics().count(DiagnosticKind::kInferredEmptyCache), 1u);
}

TEST(InferEmptyCacheTest, ReleasesBeforeAFreeOrASnapshot) {
  EXPECT_EQ(RequestsText(Recording()
                             .SegmentAlloc(kA, 2 * kM)
                             .Alloc(kA, 1)
                             .SegmentFree(kB, 20 * kM)
                             .Free(kA, 1)
                             .Build()),
            "alloc#0 empty_cache free_requested#0");
  EXPECT_EQ(RequestsText(TwoCached()
                             .SegmentFree(kA, 20 * kM)
                             .Snapshot(0)
                             .SegmentFree(kB, 20 * kM)
                             .Snapshot(0)
                             .Build()),
            absl::StrCat(kTwoCached, " empty_cache empty_cache"));
}

TEST(InferEmptyCacheTest, AllocServedFromTheCacheHadNoReasonToRelease) {
  const Schedule schedule = TwoCached()
                                .SegmentAlloc(kC, 2 * kM)
                                .Alloc(kC, 1)
                                .SegmentFree(kA, 20 * kM)
                                .SegmentFree(kB, 20 * kM)
                                .Alloc(kC + 512, 1)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), absl::StrCat(kTwoCached, " alloc#2 empty_cache alloc#3"));
}

TEST(InferEmptyCacheTest, FlushInsideAMallocThatGotItsSegment) {
  // 40 MiB were held; 50 MiB more were never seen, so the driver may have refused.
  const Schedule schedule = TwoCached()
                                .SegmentFree(kA, 20 * kM)
                                .SegmentFree(kB, 20 * kM)
                                .SegmentAlloc(kC, 50 * kM)
                                .Alloc(kC, 50 * kM)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), absl::StrCat(kTwoCached, " alloc#2"));
  EXPECT_EQ(schedule.recorded_begin().back(), 8u);
}

TEST(InferEmptyCacheTest, FlushInsideAMallocThatFailed) {
  EXPECT_EQ(
      RequestsText(
          TwoCached().SegmentFree(kA, 20 * kM).SegmentFree(kB, 20 * kM).Oom(kM, 90 * kM).Build()),
      absl::StrCat(kTwoCached, " alloc#2"));
  // Partly mapped, released again, refused.
  EXPECT_EQ(
      RequestsText(
          TwoCached().SegmentMap(kC, 20 * kM).SegmentUnmap(kC, 20 * kM).Oom(kM, 90 * kM).Build()),
      absl::StrCat(kTwoCached, " alloc#2"));
}

TEST(InferEmptyCacheTest, WithoutStacksRoomOnTheDeviceMeansEmptyCache) {
  // As above, but 100 MiB are held later: 40 + 50 would have fitted.
  const auto recording = [] {
    return TwoCached()
        .SegmentFree(kA, 20 * kM)
        .SegmentFree(kB, 20 * kM)
        .SegmentAlloc(kC, 50 * kM)
        .Alloc(kC, 50 * kM)
        .SegmentAlloc(kA, 50 * kM)
        .Alloc(kA, 50 * kM);
  };
  EXPECT_EQ(RequestsText(recording().Build()),
            absl::StrCat(kTwoCached, " empty_cache alloc#2 alloc#3"));
  // Unless settings make a malloc release segments without a refusal.
  Recording collecting = recording();
  collecting.trace().settings.emplace().garbage_collection_threshold = 0.5;
  EXPECT_EQ(RequestsText(collecting.Build()), absl::StrCat(kTwoCached, " alloc#2 alloc#3"));
  Recording limited = recording();
  limited.trace().settings.emplace().max_split_size = 40 * kM;
  EXPECT_EQ(RequestsText(limited.Build()), absl::StrCat(kTwoCached, " alloc#2 alloc#3"));
}

TEST(InferEmptyCacheTest, WhatAPoolReleasesAtItsEndIsNotTheCallAfterIt) {
  const auto requests = [](uint32_t at_its_end, uint32_t after) {
    Recording recording = TwoCached();
    recording.Stack(at_its_end).SegmentFree(kA, 20 * kM).Stack(after).SegmentFree(kB, 20 * kM);
    recording.trace().pools.push_back({0, 1});
    for (Event& event : recording.trace().devices[0].events) {
      if (event.address == Address(kA)) event.pool = 1;
    }
    return RequestsText(recording.Snapshot(0).Build());
  };
  EXPECT_EQ(requests(5, 5), absl::StrCat(kTwoCached, " pool_release empty_cache"));
  EXPECT_EQ(requests(5, 6), absl::StrCat(kTwoCached, " pool_release empty_cache empty_cache"));
}

TEST(InferEmptyCacheTest, StacksDecide) {
  const auto recording = [](uint32_t first, uint32_t second, uint32_t malloc, uint64_t peak) {
    return TwoCached()
        .Stack(first)
        .SegmentFree(kA, 20 * kM)
        .Stack(second)
        .SegmentFree(kB, 20 * kM)
        .Stack(malloc)
        .SegmentAlloc(kC, peak)
        .Alloc(kC, peak)
        .Build();
  };
  // The stack is not the malloc's: released before it.
  EXPECT_EQ(RequestsText(recording(5, 5, 6, 50 * kM)),
            absl::StrCat(kTwoCached, " empty_cache alloc#2"));
  // The malloc's own stack: a flush, however much room there was.
  EXPECT_EQ(RequestsText(TwoCached()
                             .Stack(6)
                             .SegmentFree(kA, 20 * kM)
                             .SegmentFree(kB, 20 * kM)
                             .SegmentAlloc(kC, 50 * kM)
                             .Alloc(kC, 50 * kM)
                             .SegmentAlloc(kA, 50 * kM)
                             .Alloc(kA, 50 * kM)
                             .Build()),
            absl::StrCat(kTwoCached, " alloc#2 alloc#3"));
  // max_split_size: 20 MiB serve 20, and what is not much less; where the limit is above them, all.
  for (const auto& [limit, asked, served] :
       {std::tuple(4 * kM, 20 * kM, true), {4 * kM, 3 * kM, false}, {24 * kM, 3 * kM, true}}) {
    Recording limited =
        TwoCached().Stack(6).SegmentFree(kA, 20 * kM).SegmentAlloc(kC, asked).Alloc(kC, asked);
    limited.trace().settings.emplace().max_split_size = static_cast<int64_t>(limit);
    EXPECT_EQ(RequestsText(limited.Build()),
              absl::StrCat(kTwoCached, served ? " empty_cache alloc#2" : " alloc#2"))
        << limit << " " << asked;
  }
  // Rounded up by quarters of 16 MiB, 17 MiB are 20; to a power of two, 32.
  for (const auto& [divisions, served] : {std::pair(4, true), {1, false}}) {
    Recording rounding =
        TwoCached().Stack(6).SegmentFree(kA, 20 * kM).SegmentAlloc(kC, 32 * kM).Alloc(kC, 17 * kM);
    rounding.trace().settings.emplace().roundup_power2_divisions = {{1, 0}, {16, divisions}};
    EXPECT_EQ(RequestsText(rounding.Build()),
              absl::StrCat(kTwoCached, served ? " empty_cache alloc#2" : " alloc#2"));
  }
  // Nor what was freed just before, wherever it lay: pages are released whole.
  EXPECT_EQ(RequestsText(Recording()
                             .SegmentMap(kA, 40 * kM)
                             .Alloc(kA + kM, 30 * kM)
                             .Free(kA + kM, 30 * kM)
                             .Stack(6)
                             .SegmentUnmap(kA + 20 * kM, 20 * kM)
                             .SegmentMap(kA + 20 * kM, 20 * kM)
                             .Alloc(kA + kM, 30 * kM)
                             .Build()),
            "alloc#0 free_requested#0 empty_cache alloc#1");
  // But for what would have served it: an operator itself emptied the cache.
  EXPECT_EQ(RequestsText(recording(6, 6, 6, 20 * kM)),
            absl::StrCat(kTwoCached, " empty_cache alloc#2"));
  // Both, one after the other.
  const Schedule both = recording(5, 6, 6, 50 * kM);
  EXPECT_EQ(RequestsText(both), absl::StrCat(kTwoCached, " empty_cache alloc#2"));
  EXPECT_EQ(both.recorded_begin()[4], 8u);
  EXPECT_EQ(both.recorded_begin()[5], 9u);
  // An empty_cache comes before a malloc that failed.
  EXPECT_EQ(RequestsText(TwoCached()
                             .Stack(5)
                             .SegmentFree(kA, 20 * kM)
                             .SegmentFree(kB, 20 * kM)
                             .Stack(6)
                             .Oom(kM, 90 * kM)
                             .Build()),
            absl::StrCat(kTwoCached, " empty_cache alloc#2"));
}

TEST(InferEmptyCacheTest, NothingIsInferredWhereTheTraceRecordsIt) {
  const Schedule schedule = TwoCached()
                                .Add(EventKind::kEmptyCache, 0, 0)
                                .SegmentFree(kA, 20 * kM)
                                .SegmentFree(kB, 20 * kM)
                                .SegmentAlloc(kC, 50 * kM)
                                .Alloc(kC, 50 * kM)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), absl::StrCat(kTwoCached, " empty_cache alloc#2"));
  EXPECT_EQ(schedule.recorded_begin()[4], 8u);
  EXPECT_EQ(schedule.recorded_begin()[5], 11u);
  EXPECT_EQ(schedule.diagnostics().count(DiagnosticKind::kInferredEmptyCache), 0u);
}

TEST(InferEmptyCacheTest, SegmentsOfARequestThatWasCutOffAreNoEmptyCache) {
  EXPECT_EQ(RequestsText(TwoCached().SegmentAlloc(kC, 20 * kM).Build()), kTwoCached);
}

// --- record_stream ---

TEST(InferRecordStreamTest, LateCompletionInALaterMalloc) {
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, kM)
                                .FreeRequested(kA, kM)
                                .Alloc(kA + kM, kM)
                                .FreeCompleted(kA, kM)
                                .Alloc(kA, kM / 2)
                                .Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 record_stream#0@3 free_requested#0 alloc#1 stream_done@3 alloc#2");
  EXPECT_EQ(Begins(schedule), (std::vector<uint32_t>{0, 2, 2, 3, 4, 4}));
  EXPECT_EQ(schedule.stream_count(), 4u);
  EXPECT_GT(schedule.stream_handle(3), schedule.stream_handle(2));
  EXPECT_EQ(schedule.diagnostics().count(DiagnosticKind::kInferredRecordStream), 1u);
  EXPECT_EQ(schedule.diagnostics().places(DiagnosticKind::kInferredRecordStream)[0].position, 2u);
}

// Three blocks freed late in the order 0 1 2.
Recording ThreePending() {
  return Recording()
      .SegmentAlloc(kA, 2 * kM)
      .Alloc(kA, 512)
      .Alloc(kA + 512, 512)
      .Alloc(kA + 1024, 512)
      .FreeRequested(kA, 512)
      .FreeRequested(kA + 512, 512)
      .FreeRequested(kA + 1024, 512);
}

TEST(InferRecordStreamTest, StreamsAreNumberedInOrderOfCompletion) {
  const Schedule schedule = ThreePending()
                                .FreeCompleted(kA + 512, 512)
                                .FreeCompleted(kA, 512)
                                .Alloc(kA + 2048, 512)
                                .FreeCompleted(kA + 1024, 512)
                                .Alloc(kA, 512)
                                .Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 alloc#1 alloc#2 record_stream#0@4 free_requested#0 record_stream#1@3 "
            "free_requested#1 record_stream#2@5 free_requested#2 stream_done@3 stream_done@4 "
            "alloc#3 stream_done@5 alloc#4");
}

TEST(InferRecordStreamTest, CompletionsThatNeverCome) {
  const Schedule schedule =
      ThreePending().FreeCompleted(kA + 512, 512).Alloc(kA + 512, 512).Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 alloc#1 alloc#2 record_stream#0@4 free_requested#0 record_stream#1@3 "
            "free_requested#1 record_stream#2@5 free_requested#2 stream_done@3 alloc#3");
  EXPECT_EQ(schedule.stream_count(), 6u);
}

TEST(InferRecordStreamTest, EmptyCacheWaitsForAll) {
  const Schedule schedule = ThreePending()
                                .FreeCompleted(kA, 512)
                                .FreeCompleted(kA + 512, 512)
                                .FreeCompleted(kA + 1024, 512)
                                .SegmentFree(kA, 2 * kM)
                                .Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 alloc#1 alloc#2 record_stream#0@3 free_requested#0 record_stream#1@4 "
            "free_requested#1 record_stream#2@5 free_requested#2 stream_done@3 stream_done@4 "
            "stream_done@5 empty_cache");
}

// torch.cuda.graph() empties the cache, and the malloc after it, in the capture, polls nothing.
TEST(InferRecordStreamTest, WhatCompletesWithAnotherStackIsAnEmptyCache) {
  const auto requests = [](uint32_t found_by, bool has_stacks, uint16_t pool) {
    Recording recording = ThreePending();
    recording.Stack(found_by)
        .FreeCompleted(kA, 512)
        .FreeCompleted(kA + 512, 512)
        .FreeCompleted(kA + 1024, 512)
        .Stack(6)
        .SegmentAlloc(kB, 20 * kM)
        .Alloc(kB, 20 * kM);
    recording.trace().pools.push_back({0, 1});
    recording.trace().layout.has_external_annotations = has_stacks;  // 2.5 on
    for (Event& event : recording.trace().devices[0].events) {
      if (event.address < Address(kB)) event.pool = pool;
    }
    const Schedule schedule = recording.Build();
    return RequestsText(schedule);
  };
  const std::string head =
      "alloc#0 alloc#1 alloc#2 record_stream#0@3 free_requested#0 record_stream#1@4 "
      "free_requested#1 record_stream#2@5 free_requested#2 stream_done@3 stream_done@4 "
      "stream_done@5";
  for (const uint16_t pool : {0, 1}) {  // not the pool's alone
    EXPECT_EQ(requests(5, true, pool), head + " empty_cache alloc#3");
    EXPECT_EQ(requests(6, true, pool), head + " alloc#3");
    EXPECT_EQ(requests(5, false, pool), head + " alloc#3");
  }
}

TEST(InferRecordStreamTest, WhatAFlushWaitsForIsDoneOnlyAfterTheMalloc) {
  // The flush empties the queues: no poll at the beginning of the malloc had.
  const Schedule flushed = ThreePending()
                               .FreeCompleted(kA, 512)
                               .FreeCompleted(kA + 512, 512)
                               .FreeCompleted(kA + 1024, 512)
                               .SegmentFree(kA, 2 * kM)
                               .SegmentAlloc(kB, 20 * kM)
                               .Alloc(kB, 20 * kM)
                               .Free(kB, 20 * kM)
                               .Build();
  EXPECT_EQ(RequestsText(flushed),
            "alloc#0 alloc#1 alloc#2 record_stream#0@3 free_requested#0 record_stream#1@4 "
            "free_requested#1 record_stream#2@5 free_requested#2 alloc#3 stream_done@3 "
            "stream_done@4 stream_done@5 free_requested#3");
  EXPECT_EQ(flushed.recorded_begin()[10], flushed.recorded_begin()[13]);
  // Polled before the collection of garbage, waited for after it.
  const Schedule both = ThreePending()
                            .FreeCompleted(kA, 512)
                            .SegmentFree(kB, 20 * kM)
                            .FreeCompleted(kA + 512, 512)
                            .Oom(0, 20 * kM)
                            .Build();
  EXPECT_EQ(RequestsText(both),
            "alloc#0 alloc#1 alloc#2 record_stream#0@3 free_requested#0 record_stream#1@4 "
            "free_requested#1 record_stream#2@5 free_requested#2 stream_done@3 alloc#3 "
            "stream_done@4");
}

TEST(InferRecordStreamTest, FreesPendingAtTheStart) {
  const Schedule schedule = Recording()
                                .Alloc(kA + 512, 512)
                                .FreeCompleted(kA, 300)
                                .Alloc(kA, 512)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 512)
                                .Block(512, 512)
                                .FreeBlock(2 * kM - 1024)
                                .Build();
  ASSERT_EQ(schedule.start_allocations().size(), 1u);
  const StartAllocation& start = schedule.start_allocations()[0];
  EXPECT_EQ(start.state, BlockState::kPendingFree);
  EXPECT_EQ(start.requested_size, Bytes(300));
  EXPECT_EQ(start.pending_stream, 3u);
  EXPECT_EQ(RequestsText(schedule), "alloc#0 stream_done@3 alloc#2");
  EXPECT_EQ(schedule.diagnostics().count(DiagnosticKind::kFreeCompletedWithoutRequest), 1u);
}

TEST(InferRecordStreamTest, AFreeThatIsPendingAtTheEndIsLateThoughNoneIsDone) {
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 512)
                                .FreeRequested(kA, 512)
                                .Segment(kA, 2 * kM, false)
                                .Block(512, 512, BlockState::kPendingFree)
                                .FreeBlock(2 * kM - 512)
                                .Build();
  EXPECT_EQ(RequestsText(schedule), "alloc#0 record_stream#0@3 free_requested#0");
}

TEST(InferRecordStreamTest, FilesWithoutCompletionsHaveNoLateOnes) {
  EXPECT_EQ(RequestsText(Recording()
                             .SegmentAlloc(kA, 2 * kM)
                             .Alloc(kA, 1)
                             .FreeRequested(kA, 1)
                             .Alloc(kA, 1)
                             .Build()),
            "alloc#0 free_requested#0 alloc#1");
}

TEST(InferRecordStreamTest, NothingIsInferredWhereTheTraceRecordsIt) {
  const Schedule schedule = Recording()
                                .SegmentAlloc(kA, 2 * kM)
                                .Alloc(kA, 1)
                                .Stream(1)
                                .Add(EventKind::kRecordStream, kA, 0)
                                .Stream(0)
                                .FreeRequested(kA, 1)
                                .Stream(1)
                                .Add(EventKind::kStreamDone, 0, 0)
                                .Stream(0)
                                .FreeCompleted(kA, 1)
                                .Alloc(kA, 1)
                                .Build();
  EXPECT_EQ(RequestsText(schedule),
            "alloc#0 record_stream#0@1 free_requested#0 stream_done@1 alloc#1");
  EXPECT_EQ(schedule.stream_count(), 3u);
}

}  // namespace
}  // namespace memreplay
