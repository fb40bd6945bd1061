#include "sim/remedy/schedule_edit.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/remedy/training.h"

namespace memreplay {
namespace {

using testing::Training;

Training Small() {
  Training training;
  training.Make("a", 1).Make("b", 2).Free("a").Make("c", 3).Free("b");
  return training;
}

TEST(ScheduleEditTest, NothingChanges) {
  const Training training = Small();
  const Schedule schedule = Training(training).Build();
  const std::vector<AllocationSpan> spans = AllocationSpans(schedule);
  const ScheduleEdit edit(schedule, spans);
  EXPECT_EQ(training.Words(edit.Apply()), "+a +b -a +c -b");
  EXPECT_EQ(edit.changes(), 0U);
}

TEST(ScheduleEditTest, SpansAreRequests) {
  const std::vector<AllocationSpan> spans = AllocationSpans(Small().Build());
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].made, 0U);
  EXPECT_EQ(spans[0].freed, 2U);
  EXPECT_EQ(spans[1].freed, 4U);
  EXPECT_EQ(spans[2].freed, kNoRequest);
  EXPECT_EQ(spans[2].size, MiB(3));
  EXPECT_TRUE(spans[2].is_movable);
}

TEST(ScheduleEditTest, FreesEarlierLaterAndNever) {
  const Training training = Small();
  const Schedule schedule = Training(training).Build();
  const std::vector<AllocationSpan> spans = AllocationSpans(schedule);
  ScheduleEdit edit(schedule, spans);
  ASSERT_TRUE(edit.Claim(0));
  ASSERT_TRUE(edit.Claim(1));
  ASSERT_TRUE(edit.Claim(2));
  edit.FreeBefore(0, 5);           // later than it was
  edit.FreeBefore(1, 3);           // earlier
  edit.FreeBefore(2, kNoRequest);  // as before: never
  EXPECT_EQ(training.Words(edit.Apply()), "+a +b -b +c -a");
}

TEST(ScheduleEditTest, DropsMakesAndEmpties) {
  const Training training = Small();
  const Schedule schedule = Training(training).Build();
  const std::vector<AllocationSpan> spans = AllocationSpans(schedule);
  ScheduleEdit edit(schedule, spans);
  ASSERT_TRUE(edit.Claim(1));
  EXPECT_FALSE(edit.Claim(1)) << "an allocation is changed once";
  edit.Drop(1);
  const AllocationId made = edit.MakeBefore(2, 1, MiB(7));
  edit.FreeNewBefore(made, 3);
  edit.EmptyCacheBefore(3);
  const Schedule changed = edit.Apply();
  EXPECT_EQ(training.Words(changed), "+a +7 -a -7 empty_cache +c");
  EXPECT_EQ(changed.allocation_count(), 4U);
  EXPECT_EQ(training.Words(schedule), "+a +b -a +c -b") << "the original stays";
}

TEST(ScheduleEditTest, StopsAfterARequest) {
  const Training training = Small();
  const Schedule schedule = Training(training).Build();
  const std::vector<AllocationSpan> spans = AllocationSpans(schedule);
  ScheduleEdit edit(schedule, spans);
  edit.Skip(0);
  edit.StopAfter(1);
  EXPECT_EQ(training.Words(edit.Apply()), "+b");
}

TEST(ScheduleEditTest, EventsStayWithTheirRequests) {
  const Schedule schedule = Small().Build();
  const std::vector<AllocationSpan> spans = AllocationSpans(schedule);
  ScheduleEdit edit(schedule, spans);
  ASSERT_TRUE(edit.Claim(0));
  edit.FreeBefore(0, 1);
  const Schedule changed = edit.Apply();
  ASSERT_EQ(changed.requests().size(), 5U);
  EXPECT_EQ(EventOfRequest(changed, 0), EventOfRequest(schedule, 0));
  EXPECT_EQ(EventOfRequest(changed, 2), EventOfRequest(schedule, 1));  // alloc b
  EXPECT_EQ(EventOfRequest(changed, 3), EventOfRequest(schedule, 3));  // alloc c
}

TEST(ScheduleEditTest, WhatAnotherStreamUsesStaysWhereItIs) {
  testing::Recording recording;
  recording.Alloc(1 << 20, 512).Alloc(2 << 20, 512).FreeRequested(1 << 20, 512);
  recording.Alloc(3 << 20, 512).FreeCompleted(1 << 20, 512);  // late: a stream had used it
  const std::vector<AllocationSpan> spans = AllocationSpans(recording.NoSegments().Build());
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_FALSE(spans[0].is_movable);
  EXPECT_TRUE(spans[1].is_movable);
}

}  // namespace
}  // namespace memreplay
