#include "sim/steps.h"

#include <gtest/gtest.h>

namespace memreplay {
namespace {

// A recording of one device, written by hand; addresses are never reused.
class Loop {
 public:
  Loop() {
    trace_.streams = {StreamHandle(0)};
    trace_.devices.emplace_back();
  }
  uint64_t Alloc(uint64_t mib, uint32_t stack) {
    next_ += 1 << 30;
    Add(EventKind::kAlloc, next_, mib, stack);
    return next_;
  }
  void Free(uint64_t address, uint64_t mib) {
    Add(EventKind::kFree, address, mib, 0);
    Add(EventKind::kFreeCompleted, address, mib, 0);
  }
  void Add(EventKind kind, uint64_t address, uint64_t mib, uint32_t stack) {
    Event event;
    event.kind = kind;
    event.address = Address(address);
    event.size = MiB(mib);
    event.text_or_stack = stack;
    trace_.devices[0].events.push_back(event);
  }
  const DeviceTrace& device() const { return trace_.devices[0]; }
  Trace trace_;

 private:
  uint64_t next_ = 0;
};

// `steps` steps of three layers forward and back; each leaves `leaked` MiB.
Loop Training(int steps, uint64_t leaked) {
  Loop loop;
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
  const Loop loop = Training(10, 0);
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
  Loop loop;
  for (uint64_t i = 1; i < 40; ++i) loop.Alloc(i * i, static_cast<uint32_t>(i));
  EXPECT_EQ(FindSteps(loop.trace_, loop.device(), ~uint64_t{0}).count(), 0u);
  EXPECT_EQ(FindSteps(loop.trace_, loop.device(), 0).count(), 0u);
}

TEST(FindLeak, NamesTheStack) {
  const Loop loop = Training(12, 7);
  const Steps steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  const StepGrowth growth = GrowthPerStep(loop.trace_, loop.device(), steps, ~uint64_t{0});
  EXPECT_EQ(growth.median, 7 << 20);
  EXPECT_EQ(growth.growing, steps.count());
  const StackGrowth* leak = FindLeak(steps, growth);
  ASSERT_NE(leak, nullptr);
  EXPECT_EQ(leak->stack, 4u);
  EXPECT_EQ(leak->bytes, static_cast<int64_t>(steps.count()) * (7 << 20));
  ASSERT_FALSE(leak->events.empty());
  EXPECT_EQ(loop.device().events[leak->events[0]].size, MiB(7));
}

TEST(FindLeak, WhatUnwindsIsNone) {
  Loop loop = Training(12, 7);
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
  Loop loop;
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

}  // namespace
}  // namespace memreplay
