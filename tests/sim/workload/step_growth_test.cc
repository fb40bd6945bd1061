// Tests leaks as scripts have them, and what looks like one.
#include "sim/workload/step_growth.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/support/made_loop.h"

namespace memreplay {
namespace {

constexpr uint32_t kWeights = 1, kForward = 2, kActivation = 3, kGradient = 4, kKept = 5,
                   kEvaluation = 6, kOptimizer = 7, kLogging = 8;

struct Habits {
  int steps = 40;
  uint32_t seed = 0;            // 0: all steps alike
  int evaluate_every = 0;       // four forward passes; -1: now and then
  int log_every = 0;            // one more allocation in the middle of the step
  bool warm_up = true;          // the optimizer's state comes with the first step
  bool python_forward = false;  // the forward pass under Python, the backward pass not
};

// A training loop. `after` is called at the end of each step.
template <typename After>
MadeLoop Train(const Habits& habits, const After& after) {
  MadeLoop loop;
  for (int layer = 0; layer < 6; ++layer) loop.Alloc(100, kWeights);
  // The stacks of kWeights ... kLogging must exist before the next one is made.
  loop.Free(loop.Alloc(1, kLogging), 1);
  const uint32_t forward = habits.python_forward ? loop.Stack("model.py", "forward") : kForward;
  std::mt19937 random(habits.seed);
  const auto vary = [&](uint64_t mib) {
    return habits.seed == 0 ? mib : mib + random() % (mib / 2 + 1);
  };
  for (int step = 0; step < habits.steps; ++step) {
    std::vector<std::pair<uint64_t, uint64_t>> live;
    const uint64_t batch = vary(8);
    for (int layer = 0; layer < 6; ++layer) {
      live.emplace_back(loop.Alloc(batch * 2, forward), batch * 2);
      const uint64_t temporary = loop.Alloc(batch, kActivation);
      loop.Free(temporary, batch);
    }
    if (habits.log_every > 0 && step % habits.log_every == 0) {
      loop.Free(loop.Alloc(1, kLogging), 1);
    }
    for (; !live.empty(); live.pop_back()) {
      const uint64_t gradient = loop.Alloc(16, kGradient);
      loop.Free(live.back().first, live.back().second);
      loop.Free(gradient, 16);
    }
    if (step == 0 && habits.warm_up) loop.Alloc(200, kOptimizer);
    const bool now_and_then = step == 4 || step == 11 || step == 13 || step == 29;
    const bool regularly = habits.evaluate_every > 0 && step % habits.evaluate_every == 0;
    if (habits.evaluate_every < 0 ? now_and_then : regularly) {
      for (int pass = 0; pass < 4 * 6; ++pass) {
        const uint64_t size = vary(12);
        loop.Free(loop.Alloc(size, kEvaluation), size);
      }
    }
    after(loop, step);
  }
  return loop;
}

struct Found {
  Steps steps;
  StepGrowth growth;
  std::optional<SiteGrowth> leak;
};

std::ostream& operator<<(std::ostream& out, const Found& found) {
  out << found.steps.count() << " steps of " << found.steps.allocations_per_step << " "
      << found.steps.why_none << " growth " << found.growth.median << " swing "
      << found.growth.swing << "\n";
  for (const SiteGrowth& site : found.growth.sites) {
    out << "stack " << site.stack << " bytes " << site.bytes << " kept " << site.kept << " steps "
        << site.steps << " late " << site.late_steps << " every " << site.every
        << (site.released ? " released half\n" : "\n");
  }
  return out;
}

Found Look(const MadeLoop& loop) {
  Found found;
  found.steps = FindSteps(loop.trace_, loop.device(), ~uint64_t{0});
  found.growth = GrowthPerStep(loop.trace_, loop.device(), found.steps, ~uint64_t{0});
  if (const SiteGrowth* leak = FindLeak(found.steps, found.growth)) found.leak = *leak;
  return found;
}

void Nothing(MadeLoop&, int) {}

// What each of the habits below may do to a loop, and still its steps are found.
std::vector<std::pair<std::string, Habits>> AllHabits() {
  Habits even, noisy, evaluating, logging, all;
  noisy.seed = 7;
  evaluating.evaluate_every = -1;
  logging.log_every = 15;
  all.seed = 9;
  all.evaluate_every = -1;
  all.log_every = 14;
  return {{"even", even},
          {"noisy", noisy},
          {"evaluating", evaluating},
          {"logging", logging},
          {"all", all}};
}

TEST(FindSteps, FindsTheStepsOfUntidyLoops) {
  for (const auto& [name, habits] : AllHabits()) {
    SCOPED_TRACE(name);
    const Found found = Look(Train(habits, Nothing));
    EXPECT_GE(found.steps.count(), 34u) << found;
    EXPECT_LE(found.steps.count(), 40u);
    EXPECT_FALSE(found.leak.has_value()) << found;
  }
}

TEST(FindLeak, ASlowLeakOfOneSmallTensorPerStep) {
  for (const auto& [name, habits] : AllHabits()) {
    SCOPED_TRACE(name);
    const Found found = Look(Train(habits, [](MadeLoop& loop, int) {
      loop.Alloc(KiB(4), kKept);  // losses.append(loss)
    }));
    ASSERT_TRUE(found.leak.has_value()) << found;
    EXPECT_EQ(found.leak->stack, kKept);
    EXPECT_GE(found.leak->bytes, int64_t{33} << 12);
  }
}

TEST(FindLeak, ALeakInEachFifthStep) {
  for (const auto& [name, habits] : AllHabits()) {
    SCOPED_TRACE(name);
    const Found found = Look(Train(habits, [](MadeLoop& loop, int step) {
      if (step % 5 == 0) loop.Alloc(24, kKept);  // what an evaluation leaves
    }));
    ASSERT_TRUE(found.leak.has_value()) << found;
    EXPECT_EQ(found.leak->stack, kKept);
    EXPECT_GT(found.leak->every, 0u);
  }
}

TEST(FindLeak, ABufferThatIsMadeAnewAndLargerEachStep) {
  std::pair<uint64_t, uint64_t> buffer = {0, 0};
  const Found found = Look(Train({}, [&](MadeLoop& loop, int) {
    const uint64_t larger = loop.Alloc(buffer.second + 2, kKept);  // torch.cat
    if (buffer.second > 0) loop.Free(buffer.first, buffer.second);
    buffer = {larger, buffer.second + 2};
  }));
  ASSERT_TRUE(found.leak.has_value()) << found;
  EXPECT_EQ(found.leak->stack, kKept);
  EXPECT_EQ(found.leak->allocations, 1u);
}

TEST(FindLeak, WithoutStacksByTheSize) {
  MadeLoop loop = Train({}, [](MadeLoop& made, int) { made.Alloc(KiB(96), kKept); });
  for (Event& event : loop.trace_.devices[0].events) event.text_or_stack = kNoStack;
  const Found found = Look(loop);
  ASSERT_TRUE(found.leak.has_value()) << found;
  EXPECT_EQ(found.leak->stack, kNoStack);
  EXPECT_EQ(found.leak->size, KiB(96));
}

// The loss is kept with its graph: the step keeps most of what it takes, as layers do; only the
// backward pass in it shows that it is a step.
TEST(FindLeak, AStepThatKeepsItsGraph) {
  Habits habits;
  habits.python_forward = true;
  const auto keep = [](MadeLoop& loop, int) {
    for (int layer = 0; layer < 6; ++layer) loop.Alloc(32, kKept);
  };
  const Found known = Look(Train(habits, keep));
  EXPECT_TRUE(known.steps.whole);
  ASSERT_TRUE(known.leak.has_value()) << known;
  EXPECT_EQ(known.leak->stack, kKept);
  habits.python_forward = false;
  const Found unknown = Look(Train(habits, keep));
  EXPECT_FALSE(unknown.steps.whole);
  EXPECT_TRUE(MayBeLayers(unknown.steps, unknown.growth));
  EXPECT_FALSE(unknown.leak.has_value()) << unknown;
}

TEST(FindLeak, NoneInACacheThatIsFullOneDay) {
  for (const int full : {10, 20, 29}) {
    SCOPED_TRACE(full);
    const Found found = Look(Train({}, [full](MadeLoop& loop, int step) {
      if (step < full) loop.Alloc(4, kKept);
    }));
    EXPECT_GE(found.steps.count(), 38u) << found;
    EXPECT_FALSE(found.leak.has_value()) << found;
  }
}

TEST(FindLeak, NoneInARing) {
  std::deque<uint64_t> ring;
  const Found found = Look(Train({}, [&ring](MadeLoop& loop, int) {
    ring.push_back(loop.Alloc(4, kKept));
    if (ring.size() > 12) {
      loop.Free(ring.front(), 4);
      ring.pop_front();
    }
  }));
  EXPECT_FALSE(found.leak.has_value()) << found;
}

TEST(FindLeak, NoneInGarbageThatIsCollected) {
  std::vector<uint64_t> garbage;
  const Found found = Look(Train({}, [&garbage](MadeLoop& loop, int step) {
    garbage.push_back(loop.Alloc(4, kKept));
    if (step % 9 != 8) return;
    for (const uint64_t address : garbage) loop.Free(address, 4);
    garbage.clear();
  }));
  EXPECT_FALSE(found.leak.has_value()) << found;
}

TEST(FindLeak, NoneInWhatTheLastStepHolds) {
  uint64_t last = 0;
  const Found found = Look(Train({}, [&last](MadeLoop& loop, int) {
    if (last != 0) loop.Free(last, 4);
    last = loop.Alloc(4, kKept);  // last_output = ...
  }));
  EXPECT_FALSE(found.leak.has_value()) << found;
}

}  // namespace
}  // namespace memreplay
