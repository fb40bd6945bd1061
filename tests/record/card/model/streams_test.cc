#include "record/card/model/streams.h"

#include <gtest/gtest.h>

namespace memreplay::card {
namespace {

using Completion = Streams::Completion;

TEST(Streams, HandlesAreInTheOrderOfCreationAndAligned) {
  Streams streams(Completion::kAtOnce);
  EXPECT_EQ(streams.create(0, 0), 16U);
  EXPECT_EQ(streams.create(0, 0), 32U);
  EXPECT_EQ(streams.create(0, -2), 2001U * 16);
  EXPECT_EQ(streams.create(1, 0), 16U) << "each card counts for itself";
  EXPECT_EQ(streams.priority({0, 2001 * 16}), -2);
}

TEST(Streams, AtOnceEverythingIsDone) {
  Streams streams(Completion::kAtOnce);
  Event event;
  streams.record(&event, {0, 0}, 5);
  EXPECT_TRUE(streams.complete(event, 5));
}

TEST(Streams, LaggingWorkIsDoneWhenTheHostWaits) {
  Streams streams(Completion::kLagging);
  Event first, second;
  streams.record(&first, {0, 16}, 5);
  streams.record(&second, {0, 16}, 6);
  EXPECT_FALSE(streams.complete(first, 7));
  streams.synchronize(first);
  EXPECT_TRUE(streams.complete(first, 7));
  EXPECT_FALSE(streams.complete(second, 7)) << "it came later";
  EXPECT_FALSE(streams.idle({0, 16}, 7));
  streams.synchronize(StreamKey{0, 16}, 7);
  EXPECT_TRUE(streams.complete(second, 7));
  EXPECT_TRUE(streams.idle({0, 16}, 7));
}

TEST(Streams, LaggingWorkIsDoneWhenTheQueueIsFull) {
  Streams streams(Completion::kLagging);
  Event event;
  streams.record(&event, {0, 0}, 5);
  EXPECT_FALSE(streams.complete(event, 5 + kLaunchQueue - 1));
  EXPECT_TRUE(streams.complete(event, 5 + kLaunchQueue));
  Streams patient(Completion::kExplicit);
  patient.record(&event, {0, 0}, 5);
  EXPECT_FALSE(patient.complete(event, 5 + kLaunchQueue));
}

TEST(Streams, WhoOnlyAsksWaits) {
  Streams streams(Completion::kLagging);
  Event event;
  streams.record(&event, {0, 16}, 5);
  for (int i = 1; i < kMaxPolls; ++i) ASSERT_FALSE(streams.poll(event, 6));
  EXPECT_FALSE(streams.poll(event, 7)) << "something was launched in between";
  for (int i = 2; i < kMaxPolls; ++i) ASSERT_FALSE(streams.poll(event, 7));
  EXPECT_TRUE(streams.poll(event, 7));
  EXPECT_TRUE(streams.poll(StreamKey{0, 16}, 7)) << "what was recorded last is done";
  Streams patient(Completion::kExplicit);
  patient.record(&event, {0, 0}, 5);
  for (int i = 0; i < 2 * kMaxPolls; ++i) ASSERT_FALSE(patient.poll(event, 6));
}

TEST(Streams, WaitingForOneStreamDoesWhatItWaitedFor) {
  Streams streams(Completion::kLagging);
  Event copied, later, computed;
  streams.record(&copied, {0, 16}, 5);
  streams.wait({0, 0}, copied, 6);
  streams.record(&later, {0, 16}, 7);
  streams.record(&computed, {0, 0}, 8);
  streams.synchronize(computed);
  EXPECT_TRUE(streams.complete(copied, 9));
  EXPECT_FALSE(streams.complete(later, 9));
}

TEST(Streams, AWholeCardIsWaitedForAndNoOther) {
  Streams streams(Completion::kLagging);
  Event here, there;
  streams.record(&here, {0, 16}, 5);
  streams.record(&there, {1, 16}, 5);
  streams.synchronize_card(0, 6);
  EXPECT_TRUE(streams.complete(here, 6));
  EXPECT_FALSE(streams.complete(there, 6));
}

TEST(Streams, ACaptureTakesInTheStreamsThatWaitForIt) {
  Streams streams(Completion::kLagging);
  streams.begin_capture({0, 16});
  EXPECT_TRUE(streams.capturing());
  Event fork;
  streams.record(&fork, {0, 16}, 2);
  streams.wait({0, 32}, fork, 3);
  EXPECT_EQ(streams.capture_of({0, 32}), streams.capture_of({0, 16}));
  EXPECT_EQ(streams.capture_of({0, 48}), 0U);
  EXPECT_NE(streams.end_capture({0, 16}), 0U);
  EXPECT_EQ(streams.capture_of({0, 32}), 0U);
  EXPECT_FALSE(streams.capturing());
  EXPECT_EQ(streams.end_capture({0, 16}), 0U) << "nothing is captured any more";
}

}  // namespace
}  // namespace memreplay::card
