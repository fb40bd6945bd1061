#include "record/card/model/streams.h"

#include <gtest/gtest.h>

namespace memreplay::card {
namespace {

using Completion = Streams::Completion;

TEST(Streams, HandlesAreInTheOrderOfCreationAndAligned) {
  Streams streams(Completion::kAtOnce);
  EXPECT_EQ(streams.Create(0, 0), 16U);
  EXPECT_EQ(streams.Create(0, 0), 32U);
  EXPECT_EQ(streams.Create(0, -2), 2001U * 16);
  EXPECT_EQ(streams.Create(1, 0), 16U) << "each card counts for itself";
  EXPECT_EQ(streams.PriorityOf({0, 2001 * 16}), -2);
}

TEST(Streams, AtOnceEverythingIsDone) {
  Streams streams(Completion::kAtOnce);
  Event event;
  streams.Record(&event, {0, 0}, 5);
  EXPECT_TRUE(streams.IsComplete(event, 5));
}

TEST(Streams, LaggingWorkIsDoneWhenTheHostWaits) {
  Streams streams(Completion::kLagging);
  Event first, second;
  streams.Record(&first, {0, 16}, 5);
  streams.Record(&second, {0, 16}, 6);
  EXPECT_FALSE(streams.IsComplete(first, 7));
  streams.Synchronize(first);
  EXPECT_TRUE(streams.IsComplete(first, 7));
  EXPECT_FALSE(streams.IsComplete(second, 7)) << "it came later";
  streams.Synchronize(StreamKey{0, 16}, 7);
  EXPECT_TRUE(streams.IsComplete(second, 7));
}

TEST(Streams, LaggingWorkIsDoneWhenTheQueueIsFull) {
  Streams streams(Completion::kLagging);
  Event event;
  streams.Record(&event, {0, 0}, 5);
  EXPECT_FALSE(streams.IsComplete(event, 5 + kLaunchQueue - 1));
  EXPECT_TRUE(streams.IsComplete(event, 5 + kLaunchQueue));
  Streams patient(Completion::kExplicit);
  patient.Record(&event, {0, 0}, 5);
  EXPECT_FALSE(patient.IsComplete(event, 5 + kLaunchQueue));
}

TEST(Streams, WhoOnlyAsksWaits) {
  Streams streams(Completion::kLagging);
  Event event;
  streams.Record(&event, {0, 16}, 5);
  for (int i = 1; i < kMaxPolls; ++i) ASSERT_FALSE(streams.Poll(event, 6));
  EXPECT_FALSE(streams.Poll(event, 7)) << "something was launched in between";
  for (int i = 2; i < kMaxPolls; ++i) ASSERT_FALSE(streams.Poll(event, 7));
  EXPECT_TRUE(streams.Poll(event, 7));
  EXPECT_TRUE(streams.Poll(StreamKey{0, 16}, 7)) << "what was recorded last is done";
  Streams patient(Completion::kExplicit);
  patient.Record(&event, {0, 0}, 5);
  for (int i = 0; i < 2 * kMaxPolls; ++i) ASSERT_FALSE(patient.Poll(event, 6));
}

TEST(Streams, WaitingForOneStreamDoesWhatItWaitedFor) {
  Streams streams(Completion::kLagging);
  Event copied, later, computed;
  streams.Record(&copied, {0, 16}, 5);
  streams.WaitFor({0, 0}, copied, 6);
  streams.Record(&later, {0, 16}, 7);
  streams.Record(&computed, {0, 0}, 8);
  streams.Synchronize(computed);
  EXPECT_TRUE(streams.IsComplete(copied, 9));
  EXPECT_FALSE(streams.IsComplete(later, 9));
}

TEST(Streams, AWholeCardIsWaitedForAndNoOther) {
  Streams streams(Completion::kLagging);
  Event here, there;
  streams.Record(&here, {0, 16}, 5);
  streams.Record(&there, {1, 16}, 5);
  streams.SynchronizeCard(0, 6);
  EXPECT_TRUE(streams.IsComplete(here, 6));
  EXPECT_FALSE(streams.IsComplete(there, 6));
}

TEST(Streams, ACaptureTakesInTheStreamsThatWaitForIt) {
  Streams streams(Completion::kLagging);
  streams.BeginCapture({0, 16});
  EXPECT_TRUE(streams.capturing());
  Event fork;
  streams.Record(&fork, {0, 16}, 2);
  streams.WaitFor({0, 32}, fork, 3);
  EXPECT_EQ(streams.CaptureOf({0, 32}), streams.CaptureOf({0, 16}));
  EXPECT_EQ(streams.CaptureOf({0, 48}), 0U);
  EXPECT_NE(streams.EndCapture({0, 16}), 0U);
  EXPECT_EQ(streams.CaptureOf({0, 32}), 0U);
  EXPECT_FALSE(streams.capturing());
  EXPECT_EQ(streams.EndCapture({0, 16}), 0U) << "nothing is captured any more";
}

}  // namespace
}  // namespace memreplay::card
