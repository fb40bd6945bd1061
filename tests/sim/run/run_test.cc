#include "sim/run/run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/direct_allocator.h"
#include "sim/settings/torch_profile.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

class Kinds final : public Observer {
 public:
  void OnRequest(size_t request) override { requests.push_back(request); }
  void OnEvent(const Event& event) override { kinds.push_back(event.kind); }
  std::vector<size_t> requests;
  std::vector<EventKind> kinds;
};

// Two allocations of 10 MiB, then the first is freed.
testing::Recording TwoAllocations() {
  testing::Recording program;
  program.trace().is_program = true;
  return program.Alloc(1, 10 << 20).Alloc(2, 10 << 20).Add(EventKind::kFree, 1, 0);
}

const TorchProfile& Newest() { return **FindTorchProfile("2.15"); }

TEST(Run, AFinalObserverSeesWhatAnyOtherSees) {
  const Schedule schedule = TwoAllocations().Build();
  std::vector<EventKind> kinds[2];
  for (const bool known : {false, true}) {
    SimulatedDevice device(GiB(1));
    CachingAllocator allocator(Newest(), {}, device, {});
    Kinds observer;
    const RunResult result = known ? memreplay::Run(schedule, allocator, observer)
                                   : memreplay::Run(schedule, static_cast<Allocator&>(allocator),
                                                    static_cast<Observer&>(observer));
    EXPECT_EQ(result.ooms, 0u);
    EXPECT_EQ(observer.requests, (std::vector<size_t>{0, 1, 2}));
    kinds[known] = observer.kinds;
  }
  EXPECT_EQ(kinds[0], (std::vector<EventKind>{EventKind::kSegmentAlloc, EventKind::kAlloc,
                                              EventKind::kSegmentAlloc, EventKind::kAlloc,
                                              EventKind::kFree, EventKind::kFreeCompleted}));
  EXPECT_EQ(kinds[1], kinds[0]);
}

TEST(Run, AnInterventionSkipsARequestAndEndsTheRun) {
  class SkipOneStopAtTwo final : public Intervention {
   public:
    Next BeforeRequest(size_t request, Allocator& /*allocator*/, Observer& /*out*/) override {
      return request == 1 ? Next::kSkip : request == 2 ? Next::kStop : Next::kApply;
    }
  };
  SimulatedDevice device(GiB(1));
  DirectAllocator allocator(device);
  Kinds observer;
  SkipOneStopAtTwo intervention;
  memreplay::Run(TwoAllocations().Build(), allocator, observer, {.intervention = &intervention});
  EXPECT_EQ(observer.requests, std::vector<size_t>{0});
  EXPECT_EQ(allocator.Segments().size(), 1u);
}

TEST(StopWhen, EndsTheRunBeforeTheRequest) {
  SimulatedDevice device(GiB(1));
  DirectAllocator allocator(device);
  Kinds observer;
  StopWhen full([&] { return allocator.Segments().size() == 2; });
  memreplay::Run(TwoAllocations().Build(), allocator, observer, {.intervention = &full});
  EXPECT_EQ(observer.requests, (std::vector<size_t>{0, 1}));
}

TEST(Run, WhatPyTorchRefusesAndWhatRunsOutAreOutcomes) {
  testing::Recording program;
  program.trace().is_program = true;
  const uint32_t unknown = program.trace().strings.Intern("no_such_key:1");
  const uint32_t no_number = program.trace().strings.Intern("half");
  const Schedule schedule = program.Alloc(1, 100 << 20)
                                .Stack(unknown)
                                .Add(EventKind::kSettings, 0, 0)
                                .Stack(no_number)
                                .Add(EventKind::kFraction, 0, 0)
                                .Build();
  SimulatedDevice device(MiB(50));
  CachingAllocator allocator(Newest(), {}, device, {});
  Kinds observer;
  const RunResult result = memreplay::Run(schedule, allocator, observer);
  EXPECT_EQ(result.ooms, 1u);
  ASSERT_EQ(result.failures.size(), 2u);
  EXPECT_EQ(result.failures[0].request, 1u);
  EXPECT_NE(result.failures[0].message.find("no_such_key"), std::string::npos);
  EXPECT_EQ(result.failures[1].request, 2u);
  EXPECT_EQ(result.failures[1].message, "memory fraction: expected a number, found 'half'");
  EXPECT_FALSE(result.failures[1].is_out_of_memory);
}

TEST(Run, RestoredSettingsAreThoseThatTheRunBeganWith) {
  testing::Recording program;
  program.trace().is_program = true;
  const uint64_t restores = 1;
  const Schedule schedule = program.Add(EventKind::kSettings, 0, restores).Build();
  SimulatedDevice device(GiB(1));
  CachingAllocator allocator(Newest(), {}, device, {});
  Kinds observer;
  EXPECT_TRUE(memreplay::Run(schedule, allocator, observer).failures.empty());
  const RunResult result =
      memreplay::Run(schedule, allocator, observer, {.conf = "at_the_start:1"});
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_NE(result.failures[0].message.find("at_the_start"), std::string::npos);
}

}  // namespace
}  // namespace memreplay
