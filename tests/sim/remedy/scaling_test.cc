#include "sim/remedy/scaling.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/search.h"
#include "sim/study/study.h"
#include "tests/sim/remedy/training.h"

namespace memreplay {
namespace {

using testing::Training;

// Two blocks, whose weights are 8 MiB and of which each saves 10 for each sample; the frees at the
// end come in the order of `last`.
Training OfBatch(uint64_t batch, const std::vector<std::string>& last = {"w", "loss"}) {
  Training training;
  training.In(Training::Train()).Make("w", 8);
  training.In(Training::Block(1)).Make("t1", 3 * batch).Make("s1", 10 * batch).Free("t1");
  training.In(Training::Block(2)).Make("r1", batch);
  training.In(Training::Block(1)).Make("t2", 3 * batch).Make("s2", 10 * batch).Free("t2");
  training.In(Training::Block(2)).Make("r2", batch);
  training.In(Training::Loss()).Make("loss", 1);
  training.In({}).Make("d2", batch).Free("r2");
  training.Make("e2", 10 * batch).Free("s2").Make("d1", batch);
  training.Free("d2").Free("e2").Free("r1");
  training.Make("e1", 10 * batch).Free("s1").Free("d1").Free("e1");
  for (const std::string& name : last) training.In(Training::Train()).Free(name);
  return training;
}

std::string SizesOf(const Schedule& schedule) {
  std::string sizes;
  for (const Event& request : schedule.requests()) {
    if (request.kind != EventKind::kAlloc) continue;
    absl::StrAppend(&sizes, sizes.empty() ? "" : " ", request.size / MiB(1));
  }
  return sizes;
}

std::string ErrorOf(const Schedule& a, const Schedule& b) {
  return std::string(Scaling::Find({{"a", 2, &a}, {"b", 4, &b}}).status().message());
}

TEST(ScalingTest, TheThirdIsAsRecorded) {
  const Schedule two = OfBatch(2).Build(), four = OfBatch(4, {"loss", "w"}).Build();
  const auto scaling = Scaling::Find({{"two", 2, &two}, {"four", 4, &four}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_EQ(scaling->allocations(), 12U);
  EXPECT_EQ(scaling->growing(), 10U);
  EXPECT_EQ(scaling->bent(), 0U);
  for (const uint64_t batch : {1, 2, 3, 4, 7}) {
    const Schedule recorded = OfBatch(batch).Build();
    const Schedule made = scaling->At(static_cast<int64_t>(batch));
    EXPECT_EQ(SizesOf(made), SizesOf(recorded)) << batch;
    EXPECT_EQ(OfBatch(batch).Words(made), OfBatch(batch).Words(recorded)) << batch;
    // Positions of the recording stay those of the requests.
    EXPECT_EQ(EventOfRequest(made, 5), EventOfRequest(two, 5));
  }
}

TEST(ScalingTest, OfThreeTheNearestTwoCount) {
  Training one, two, four;
  one.In(Training::Train()).Make("a", 10).Make("b", 7).Make("c", 5);
  two.In(Training::Train()).Make("a", 20).Make("b", 7).Make("c", 6);
  four.In(Training::Train()).Make("a", 40).Make("b", 7).Make("c", 12);
  const Schedule schedules[] = {one.Build(), two.Build(), four.Build()};
  const auto scaling =
      Scaling::Find({{"two", 2, &schedules[1]}, {"one", 1, schedules}, {"four", 4, &schedules[2]}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_EQ(scaling->base().name, "two");
  EXPECT_EQ(scaling->recordings()[0].name, "one");
  EXPECT_EQ(scaling->growing(), 2U);
  EXPECT_EQ(scaling->bent(), 1U);
  EXPECT_EQ(scaling->largest_bent(), MiB(12));
  EXPECT_EQ(SizesOf(scaling->At(1)), "10 7 5");
  EXPECT_EQ(SizesOf(scaling->At(2)), "20 7 6");
  EXPECT_EQ(SizesOf(scaling->At(3)), "30 7 9");
  EXPECT_EQ(SizesOf(scaling->At(5)), "50 7 15");
}

// Of two recordings, a line below 0 at 0 or one that falls is none that tensors have; and a size
// is never 0.
TEST(ScalingTest, LinesThatTensorsDoNotHave) {
  Training two, four;
  two.In(Training::Train()).Make("a", 1).Make("b", 9).Make("c", 2);
  four.In(Training::Train()).Make("a", 9).Make("b", 1).Make("c", 4);
  const Schedule a = two.Build(), b = four.Build();
  const auto scaling = Scaling::Find({{"a", 2, &a}, {"b", 4, &b}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  EXPECT_EQ(scaling->bent(), 2U);
  EXPECT_EQ(scaling->SizeOf(0, 1), Bytes(1));
  EXPECT_EQ(scaling->SizeOf(1, 9), Bytes(1));
  EXPECT_EQ(scaling->SizeOf(0, int64_t{1} << 40), kMaxDeviceMemory);
}

TEST(ScalingTest, WhatIsLiveAtTheStartIsPairedByItsFreesAndItsLines) {
  const auto recording = [](uint64_t batch) {
    testing::Recording events;
    events.Alloc(uint64_t{1} << 30, MiB(batch).value());
    events.Free(uint64_t{2} << 30, MiB(5 * batch).value());
    events.Segment(uint64_t{1} << 30, MiB(batch).value())
        .Block(MiB(batch).value(), MiB(batch).value());
    events.Segment(uint64_t{3} << 30, MiB(7).value()).Block(MiB(7).value(), MiB(7).value());
    return events.Build();
  };
  const Schedule two = recording(2), four = recording(4);
  ASSERT_EQ(two.start_allocations().size(), 2U);
  const auto scaling = Scaling::Find({{"a", 2, &two}, {"b", 4, &four}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  std::vector<Bytes> sizes;
  const Schedule three = scaling->At(3);
  for (const StartAllocation& start : three.start_allocations()) {
    sizes.push_back(start.requested_size);
  }
  EXPECT_EQ(sizes, (std::vector<Bytes>{MiB(15), MiB(7)}));
}

TEST(ScalingTest, OfLinesThatAreAlikeTheFirstOfBothFilesArePaired) {
  const auto recording = [](uint64_t batch) {
    testing::Recording events;
    Trace& trace = events.trace();
    for (uint32_t folder = 1; folder <= 16; ++folder) {
      const uint32_t frame = trace.stacks.InternFrame(
          {trace.strings.Intern(absl::StrCat(folder, "/part.py")), trace.strings.Intern("f"), 1});
      events.Segment(uint64_t{folder} << 30, MiB(folder * batch).value())
          .Block(MiB(folder * batch).value(), MiB(folder * batch).value());
      trace.devices[0].final_state.back().blocks[0].stack = trace.stacks.InternStack({frame});
    }
    return events.Alloc(uint64_t{1} << 40, 512).Build();
  };
  const Schedule two = recording(2), four = recording(4);
  const auto scaling = Scaling::Find({{"a", 2, &two}, {"b", 4, &four}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  const Schedule three = scaling->At(3);
  for (const StartAllocation& start : three.start_allocations()) {
    EXPECT_EQ(start.requested_size, MiB(3 * (start.address.value() >> 30)));
  }
}

TEST(ScalingTest, TheFirstEventThatDiffersIsNamed) {
  const Schedule two = OfBatch(2).Build();
  Training other = OfBatch(4, {});
  const std::string shorter = ErrorOf(two, other.Build());
  EXPECT_NE(shorter.find("event 32 of a is free_requested of 8388608 bytes"), std::string::npos)
      << shorter;
  EXPECT_NE(shorter.find("b has ended"), std::string::npos) << shorter;
  Training elsewhere;
  elsewhere.In(Training::Train()).Make("w", 8);
  elsewhere.In(Training::Block(9)).Make("t1", 12);
  const std::string moved = ErrorOf(two, elsewhere.Build());
  EXPECT_NE(moved.find("event 1 of a is alloc of 6291456 bytes at model.py:1 forward, event 1 of b "
                       "is alloc of 12582912 bytes at model.py:9 forward; expected recordings of "
                       "one script"),
            std::string::npos)
      << moved;
  Training another;
  another.In(Training::Train()).Make("w", 8);
  another.In(Training::Block(1)).Make("t1", 12).Make("s1", 40).Free("s1");
  EXPECT_NE(ErrorOf(two, another.Build()).find("event 3 of a is free_requested of 6291456 bytes"),
            std::string::npos);
}

TEST(ScalingTest, UnusableRecordings) {
  const Schedule two = OfBatch(2).Build(), four = OfBatch(4).Build();
  const auto error = [](std::vector<RecordedValue> recordings) {
    return std::string(Scaling::Find(std::move(recordings)).status().message());
  };
  EXPECT_EQ(error({{"a", 2, &two}}),
            "expected at least two recordings with different values, found 1");
  EXPECT_EQ(error({{"a", 2, &two}, {"b", 2, &four}}),
            "a and b: expected different values, found 2 twice");
  EXPECT_EQ(error({{"a", 0, &two}, {"b", 2, &four}}), "a: expected a value of at least 1, found 0");
  Training out = OfBatch(8);
  out.Oom(100);
  const Schedule ran_out = out.Build();
  EXPECT_NE(error({{"a", 2, &two}, {"b", 8, &ran_out}}).find("b: memory ran out at event 36"),
            std::string::npos);
}

// By hand: w and, for each sample, s1 r1 s2 d2 e2 are 8 + 10 + 1 + 10 + 1 + 10, and the loss is 1.
TEST(ScalingTest, TheLargestValueThatFits) {
  const Schedule two = OfBatch(2).Build(), four = OfBatch(4).Build();
  const auto scaling = Scaling::Find({{"two", 2, &two}, {"four", 4, &four}});
  ASSERT_TRUE(scaling.ok()) << scaling.status();
  SettingsRequest request;
  request.torch = "2.6";
  request.capacity = MiB(400);
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(two.trace(), request);
  ASSERT_TRUE(settings.ok()) << settings.status();
  const Study study(two, *settings);
  const Schedule six = scaling->At(6);
  const auto found = SearchRemedies(study, six, *settings);
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  const RemedySearch& search = **found;
  EXPECT_EQ(search.as_is.peak_allocated, MiB(8 + 1 + 6 * 32));
  const auto largest_of = [&](const RemedyRun& run) {
    const auto largest = FindLargestValue(study, *settings, search, run, *scaling);
    EXPECT_TRUE(largest.ok()) << largest.status();
    const int64_t safe = largest->safe.value_or(0);
    // Replays of the next and of this value themselves agree.
    for (const int64_t value : {safe, safe + 1}) {
      if (!run.remedies.empty() || value == 0) continue;
      const Schedule made = scaling->At(value);
      const auto replayed = SearchRemedies(study, made, *settings);
      EXPECT_EQ((**replayed).as_is.survives, value == safe) << value;
    }
    return safe;
  };
  const int64_t as_is = largest_of(search.as_is);
  EXPECT_GT(as_is, 6);
  EXPECT_LE(as_is, (400 - 9) / 32);
  bool has_checkpoint = false;
  for (const RemedyRun& run : search.runs) {
    if (run.remedies.size() != 1 ||
        search.remedies[run.remedies[0]].kind != RemedyKind::kCheckpoint ||
        search.remedies[run.remedies[0]].every != 1) {
      continue;
    }
    has_checkpoint = true;
    EXPECT_GT(largest_of(run), as_is);
  }
  EXPECT_TRUE(has_checkpoint);
}

}  // namespace
}  // namespace memreplay
