#include "sim/remedy/remedies.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "sim/recording/replay_settings.h"
#include "sim/remedy/passes.h"
#include "sim/remedy/search.h"
#include "sim/study/study.h"
#include "tests/sim/remedy/training.h"

namespace memreplay {
namespace {

using testing::Training;
using testing::TwoBlocks;

// Returns what the recording requests with the first remedy of a kind; "" if there is none.
std::string With(Training training, RemedyKind kind, uint32_t every = 1) {
  const Schedule schedule = training.Build();
  const Meanings meanings = FindMeanings(schedule);
  const std::optional<PassFacts> facts = FindPassFacts(schedule, meanings);
  if (!facts.has_value()) return "no facts";
  for (const Remedy& remedy : FindRemedies(*facts)) {
    if (remedy.kind != kind || remedy.every != every) continue;
    ScheduleEdit edit(schedule, facts->spans);
    ApplyRemedy(*facts, remedy, &edit);
    return training.Words(edit.Apply());
  }
  return "";
}

TEST(RemediesTest, ABlockThatIsCalledTwiceIsFound) {
  const Schedule schedule = TwoBlocks().Build();
  const Meanings meanings = FindMeanings(schedule);
  const std::optional<PassFacts> facts = FindPassFacts(schedule, meanings);
  ASSERT_TRUE(facts.has_value());
  ASSERT_EQ(facts->modules.size(), 1U);
  const RepeatedModule& block = facts->modules[0];
  EXPECT_EQ(block.saved, MiB(80));
  ASSERT_EQ(block.calls.size(), 2U);
  EXPECT_EQ(block.calls[0].saved, std::vector<AllocationId>{1});
  EXPECT_EQ(block.calls[0].returned, std::vector<AllocationId>{2});
  EXPECT_EQ(block.calls[1].saved, std::vector<AllocationId>{4});
  const Trace& trace = schedule.trace();
  EXPECT_EQ(trace.stacks.frame(block.forward).line, 1U);
  EXPECT_EQ(trace.stacks.frame(block.caller).line, 100U);
}

// As it is: +t1 +s1 -t1 +r1 +t2 +s2 -t2 +r2 +loss +d2 -r2 +e2 -s2 +d1 -d2 -e2 -r1 +e1 -s1 -d1 -e1
// -loss

TEST(RemediesTest, CheckpointFreesAndMakesAgainBeforeUse) {
  EXPECT_EQ(With(TwoBlocks(), RemedyKind::kCheckpoint),
            "+t1 +s1 -t1 +r1 -s1 +t2 +s2 -t2 +r2 -s2 +loss +d2 -r2 "
            "+3 +40 -3 +e2 -40 +d1 -d2 -e2 -r1 "
            "+3 +40 -3 +e1 -40 -d1 -e1 -loss");
}

// Nothing but the next operation needs what is not saved.
TEST(RemediesTest, CheckpointFreesAfterTheOperationThatFollows) {
  Training training;
  for (const std::string n : {"1", "2"}) {
    training.In(Training::Block(1)).Make("s" + n, 40);
    training.In(Training::Block(2)).Make("u" + n, 8);
    training.In(Training::Block(3)).Make("v" + n, 9);
    training.In(Training::Block(4)).Make("r" + n, 4);
  }
  training.In(Training::Loss()).Make("loss", 1);
  training.In({}).Make("d2", 4).Free("r2");
  training.Make("e2", 9).Free("v2").Free("u2").Free("s2").Make("d1", 4);
  training.Free("d2").Free("e2").Free("r1");
  training.Make("e1", 9).Free("v1").Free("u1").Free("s1").Free("d1").Free("e1");
  training.In(Training::Train()).Free("loss");
  EXPECT_EQ(With(training, RemedyKind::kCheckpoint),
            "+s1 +u1 -s1 +v1 -u1 +r1 -v1 +s2 +u2 -s2 +v2 -u2 +r2 -v2 +loss +d2 -r2 "
            "+40 +8 +9 +e2 -9 -8 -40 +d1 -d2 -e2 -r1 "
            "+40 +8 +9 +e1 -9 -8 -40 -d1 -e1 -loss");
}

TEST(RemediesTest, EverySecondCall) {
  EXPECT_EQ(With(TwoBlocks(), RemedyKind::kCheckpoint, 2),
            "+t1 +s1 -t1 +r1 -s1 +t2 +s2 -t2 +r2 +loss +d2 -r2 "
            "+e2 -s2 +d1 -d2 -e2 -r1 "
            "+3 +40 -3 +e1 -40 -d1 -e1 -loss");
}

TEST(RemediesTest, OnTheHostWhatACallReturnsStaysForTheNext) {
  EXPECT_EQ(With(TwoBlocks(), RemedyKind::kHost),
            "+t1 +s1 -t1 +r1 -s1 +t2 +s2 -t2 +r2 -r1 -s2 +loss -r2 "
            "+4 +d2 -4 +40 +e2 -40 +4 +d1 -d2 -e2 -4 "
            "+40 +e1 -40 -d1 -e1 -loss");
}

TEST(RemediesTest, ARecordingThatEndsInForwardIsFreedAndNotMadeAgain) {
  Training training;
  training.In(Training::Block(1)).Make("s1", 40);
  training.In(Training::Block(2)).Make("r1", 8);
  training.In(Training::Block(1)).Make("s2", 40);
  training.In(Training::Block(2)).Make("r2", 8);
  training.In(Training::Block(1)).Oom(40);
  const Schedule schedule = training.Build();
  const Meanings meanings = FindMeanings(schedule);
  const std::optional<PassFacts> facts = FindPassFacts(schedule, meanings);
  ASSERT_TRUE(facts.has_value());
  ASSERT_TRUE(facts->refused.has_value());
  EXPECT_EQ(*facts->refused, 4U);
  EXPECT_EQ(With(training, RemedyKind::kCheckpoint), "+s1 +r1 -s1 +s2 +r2 -s2 +40");
}

// Six blocks, each with a result that the next reads; nothing is freed before the end.
TEST(RemediesTest, APassWithoutBackwardNeedNotKeepItsActivations) {
  for (const bool keeps : {true, false}) {
    Training training;
    for (int i = 1; i <= 6; ++i) {
      const std::string n = std::to_string(i), last = std::to_string(i - 1);
      training.In(Training::Block(1)).Make("s" + n, 40);
      training.In(Training::Block(2)).Make("r" + n, 8);
      if (keeps) continue;
      training.Free("s" + n);
      if (i > 1) training.Free("r" + last);
    }
    for (int i = keeps ? 1 : 6; i <= 6; ++i) training.Free("r" + std::to_string(i));
    for (int i = 1; keeps && i <= 6; ++i) training.Free("s" + std::to_string(i));
    if (keeps) {
      EXPECT_EQ(With(training, RemedyKind::kNoGrad),
                "+s1 +r1 -s1 +s2 +r2 -r1 -s2 +s3 +r3 -r2 -s3 +s4 +r4 -r3 -s4 +s5 +r5 -r4 -s5 "
                "+s6 +r6 -r5 -r6 -s6");
    } else {
      const Schedule schedule = training.Build();
      const Meanings meanings = FindMeanings(schedule);
      EXPECT_TRUE(FindRemedies(*FindPassFacts(schedule, meanings)).empty());
    }
  }
}

Training WithLoss(bool keeps_logits) {
  Training training;
  training.In(Training::Block(1)).Make("s1", 40);
  training.In(Training::Block(2)).Make("r1", 4);
  training.In(Training::Block(1)).Make("s2", 40);
  training.In(Training::Block(2)).Make("r2", 4);
  training.In(Training::Linear()).Make("logits", 80);
  training.In(Training::Loss()).Make("float", 160).Make("softmax", 160).Free("float");
  training.In({}).Make("dsoftmax", 160).Make("dfloat", 160).Free("softmax").Free("dsoftmax");
  if (!keeps_logits) training.Free("logits");
  training.Make("dlogits", 80).Free("dfloat").Make("d2", 4).Free("dlogits").Free("r2");
  training.Make("e2", 40).Free("s2").Free("d2").Free("e2").Free("r1");
  training.Make("e1", 40).Free("s1").Free("e1");
  if (keeps_logits) training.In(Training::Train()).Free("logits");
  return training;
}

TEST(RemediesTest, AFusedLossTakesTheMemoryOfTheLogits) {
  EXPECT_EQ(With(WithLoss(/*keeps_logits=*/false), RemedyKind::kFusedLoss),
            "+s1 +r1 +s2 +r2 +logits +d2 -logits -r2 +e2 -s2 -d2 -e2 -r1 +e1 -s1 -e1");
  EXPECT_EQ(With(WithLoss(/*keeps_logits=*/true), RemedyKind::kFusedLoss),
            "+s1 +r1 +s2 +r2 +logits +d2 -r2 +e2 -s2 -d2 -e2 -r1 +e1 -s1 -e1 -logits");
}

TEST(RemediesTest, AnOptimizerOneParameterAfterTheOther) {
  Training training = TwoBlocks();
  training.In(Training::Adam()).Make("p", 5).Make("q", 6).Make("r", 7).Make("s", 8);
  training.Free("p").Free("q").Free("r").Free("s");
  training.In(Training::Block(1)).Make("next", 2);
  const std::string words = With(training, RemedyKind::kForeach);
  EXPECT_EQ(words.substr(words.find("-loss")), "-loss +p +q -p +r -q +s -r -s +next");
}

TEST(RemediesTest, NothingIsProposedWithoutStacks) {
  Training training;
  training.Make("a", 40).Make("b", 40).Free("a").Free("b");
  const Schedule schedule = training.Build();
  const Meanings meanings = FindMeanings(schedule);
  const std::optional<PassFacts> facts = FindPassFacts(schedule, meanings);
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(FindRemedies(*facts).empty());
}

absl::StatusOr<std::optional<RemedySearch>> Search(Training training,
                                                   std::optional<Bytes> capacity) {
  const Schedule schedule = training.Build();
  SettingsRequest request;
  request.torch = "2.6";
  request.capacity = capacity;
  const absl::StatusOr<ReplaySettings> resolved = ResolveSettings(schedule.trace(), request);
  if (!resolved.ok()) return resolved.status();
  const Study study(schedule, *resolved);
  return SearchRemedies(study, study.schedule(), *resolved);
}

TEST(RemedySearchTest, AllocatedPeaksByHand) {
  const auto found = Search(TwoBlocks(), std::nullopt);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value());
  const RemedySearch& search = **found;
  // s1 r1 s2 loss d2 e2, and with checkpoints r1 loss d2 s2 e2.
  EXPECT_EQ(search.as_is.peak_allocated, MiB(40 + 4 + 40 + 1 + 4 + 40));
  for (const RemedyRun& run : search.runs) {
    const Remedy& remedy = search.remedies[run.remedies[0]];
    if (run.remedies.size() == 1 && remedy.kind == RemedyKind::kCheckpoint && remedy.every == 1) {
      EXPECT_EQ(run.peak_allocated, MiB(4 + 1 + 4 + 40 + 40));
    }
  }
  EXPECT_LE(search.replays, kMaxReplays);
  EXPECT_TRUE(search.is_complete);
}

TEST(RemedySearchTest, WhatFitsIsFoundAndEachPartIsNeeded) {
  const auto found = Search(TwoBlocks(), MiB(110));
  ASSERT_TRUE(found.ok()) << found.status();
  const RemedySearch& search = **found;
  EXPECT_FALSE(search.as_is.survives);
  const auto fits = [&](RemedyKind kind) {
    return std::any_of(search.runs.begin(), search.runs.end(), [&](const RemedyRun& run) {
      return run.remedies.size() == 1 && run.survives &&
             search.remedies[run.remedies[0]].kind == kind;
    });
  };
  EXPECT_TRUE(fits(RemedyKind::kCheckpoint));
  EXPECT_FALSE(fits(RemedyKind::kSettings));
  for (const RemedyRun& run : search.runs) {
    EXPECT_EQ(run.remedies.size(), 1U) << "one is enough, so no two are tried";
    if (run.survives) {
      EXPECT_LE(run.peak_reserved, MiB(110));
    }
  }
}

// What is cached of the first block is released for the second one, if the device is too small for
// both. Then no more than the second is reserved.
TEST(RemedySearchTest, WhatSurvivesByReleasingIsReservedWithinTheGoal) {
  Training training;
  training.In({}).Make("first", 40).Free("first").Make("second", 60);
  for (const auto& [goal, reserved] :
       {std::pair(200, 100), std::pair(70, 60), std::pair(50, 100)}) {
    const auto found = Search(training, MiB(goal));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((**found).as_is.peak_reserved, MiB(reserved)) << goal;
    EXPECT_EQ((**found).as_is.survives, goal != 50) << goal;
  }
}

TEST(RemedySearchTest, NothingFitsInNothing) {
  const auto found = Search(TwoBlocks(), MiB(20));
  ASSERT_TRUE(found.ok()) << found.status();
  for (const RemedyRun& run : (*found)->runs) EXPECT_FALSE(run.survives);
}

}  // namespace
}  // namespace memreplay
