#include "sim/workload/steps.h"

#include <gtest/gtest.h>

#include "sim/workload/step_growth.h"
#include "tests/sim/support/made_loop.h"

namespace memreplay {
namespace {

// `steps` steps of three layers forward and back; each leaves `leaked` MiB.
MadeLoop Training(int steps, uint64_t leaked) {
  MadeLoop loop;
  for (int layer = 0; layer < 5; ++layer) loop.Alloc(100, 1);
  for (int step = 0; step < steps; ++step) {
    const uint64_t a = loop.Alloc(10, 2);
    const uint64_t b = loop.Alloc(10, 2);
    const uint64_t c = loop.Alloc(30, 3);
    if (leaked > 0) loop.Alloc(leaked, 4);
    loop.Free(c, 30);
    loop.Free(b, 10);
    loop.Free(a, 10);
  }
  return loop;
}

TEST(FindSteps, ThePeriodOfALoop) {
  const MadeLoop loop = Training(10, 0);
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  EXPECT_EQ(steps.source, StepSource::kPeriod);
  EXPECT_EQ(steps.allocations_per_step, 3u);
  EXPECT_GE(steps.count(), 8u);
  EXPECT_EQ(steps.agreement, 1);
  for (size_t i = 1; i < steps.begins.size(); ++i) {
    EXPECT_EQ(steps.begins[i] - steps.begins[i - 1], 9u);
  }
  // Least is live where a step begins.
  EXPECT_EQ((steps.begins[0] - 5) % 9, 0u);
  const StepGrowth growth = GrowthPerStep(loop.trace_, loop.device(), steps, ~uint64_t{0});
  EXPECT_EQ(growth.median, 0);
  EXPECT_EQ(growth.swing, 50 << 20);
  EXPECT_EQ(FindLeak(steps, growth), nullptr);
}

TEST(FindSteps, NoneInWhatDoesNotRepeat) {
  MadeLoop loop;
  for (uint64_t i = 1; i < 40; ++i) loop.Alloc(i * i, static_cast<uint32_t>(i));
  EXPECT_EQ(FindSteps(loop.trace_, loop.device(), ~uint64_t{0}).count(), 0u);
  EXPECT_EQ(FindSteps(loop.trace_, loop.device(), 0).count(), 0u);
}

TEST(FindLeak, NamesTheStack) {
  const MadeLoop loop = Training(12, 7);
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  const StepGrowth growth = GrowthPerStep(loop.trace_, loop.device(), steps, ~uint64_t{0});
  EXPECT_EQ(growth.median, 7 << 20);
  EXPECT_EQ(growth.growing, steps.count());
  const SiteGrowth* leak = FindLeak(steps, growth);
  ASSERT_NE(leak, nullptr);
  EXPECT_EQ(leak->stack, 4u);
  EXPECT_EQ(leak->bytes, static_cast<int64_t>(steps.count()) * (7 << 20));
  ASSERT_FALSE(leak->events.empty());
  EXPECT_EQ(loop.device().events[leak->events[0]].size, MiB(7));
}

TEST(FindLeak, WhatUnwindsIsNone) {
  MadeLoop loop = Training(12, 7);
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  const size_t events = loop.device().events.size();
  for (size_t i = 0; i < events; ++i) {
    const Event event = loop.device().events[i];
    if (event.kind == EventKind::kAlloc && event.text_or_stack == 4) {
      loop.Free(event.address.value(), 7);
    }
  }
  const StepGrowth growth =
      GrowthPerStep(loop.trace_, loop.device(), steps, loop.device().events.size());
  EXPECT_EQ(FindLeak(steps, growth), nullptr);
}

TEST(FindSteps, PhasesOfAProgram) {
  MadeLoop loop;
  loop.trace_.is_program = true;
  for (int step = 0; step < 5; ++step) {
    for (const char* part : {"fwd", "bwd"}) {
      Event mark;
      mark.kind = EventKind::kMark;
      mark.size = Bytes(static_cast<uint64_t>(MarkKind::kPhase));
      mark.text_or_stack = loop.trace_.strings.Intern("it" + std::to_string(step) + "." + part);
      loop.trace_.devices[0].events.push_back(mark);
      loop.Alloc(3 + 7 * static_cast<uint64_t>(step), 1);
    }
  }
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  EXPECT_EQ(steps.source, StepSource::kMarks);
  EXPECT_EQ(steps.begins, (std::vector<uint64_t>{0, 4, 8, 12, 16}));
  EXPECT_EQ(steps.allocations_per_step, 2u);
}

// Ten steps of 9 events each, 1 ms per event.
MadeLoop Timed(int steps) {
  MadeLoop loop = Training(steps, 0);
  for (size_t i = 0; i < loop.device().events.size(); ++i) {
    loop.trace_.devices[0].time_us.push_back(static_cast<int64_t>(1000 * i));
  }
  return loop;
}

void Annotate(const std::string& name, const char* stage, int64_t time_us, MadeLoop* loop) {
  loop->trace_.annotations.push_back(
      {loop->trace_.strings.Intern(name), loop->trace_.strings.Intern(stage), 0, time_us});
}

TEST(FindSteps, NumberedAnnotationsOfARecording) {
  MadeLoop loop = Timed(10);
  // Training() begins with 5 events; steps 2 to 5 were profiled. PyTorch writes
  // annotations in no order.
  for (const int step : {4, 2, 3, 5}) {
    const int64_t start = 1000 * (5 + 9 * step) - 10;
    Annotate("ProfilerStep#" + std::to_string(step), "END", start + 9000, &loop);
    Annotate("ProfilerStep#" + std::to_string(step), "START", start, &loop);
    Annotate("layer" + std::to_string(step), "START", start + 500, &loop);
  }
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  EXPECT_EQ(steps.source, StepSource::kAnnotations);
  EXPECT_EQ(steps.name, "ProfilerStep#");
  EXPECT_EQ(steps.begins, (std::vector<uint64_t>{23, 32, 41, 50, 59}));
  EXPECT_EQ(steps.allocations_per_step, 3u);
}

TEST(FindSteps, FromOneOptimizerStepToTheNext) {
  MadeLoop loop = Timed(10);
  for (int step = 0; step < 6; ++step) {
    Annotate("Optimizer.step#Adam.step", "START", 1000 * (12 + 9 * step), &loop);
    Annotate("Optimizer.step#Adam.step", "END", 1000 * (13 + 9 * step), &loop);
  }
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  EXPECT_EQ(steps.source, StepSource::kAnnotations);
  EXPECT_EQ(steps.begins, (std::vector<uint64_t>{13, 22, 31, 40, 49, 58}));
}

// One optimizer step: what repeats ten times is a part of it.
TEST(FindSteps, PartsOfOneAnnotatedStepAreNone) {
  MadeLoop loop = Timed(10);
  Annotate("Optimizer.step#Adam.step", "START", 80000, &loop);
  Annotate("Optimizer.step#Adam.step", "END", 81000, &loop);
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  EXPECT_EQ(steps.count(), 0u);
  EXPECT_NE(steps.why_none.find("Optimizer.step#Adam.step comes 1 time"), std::string::npos)
      << steps.why_none;
}

}  // namespace
}  // namespace memreplay
