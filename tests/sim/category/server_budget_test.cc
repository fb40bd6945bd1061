#include "sim/category/server_budget.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

using testing::Recording;

// Returns the stack of one function, called in a forward() or not.
uint32_t ServerStack(Trace& trace, const std::string& name, bool in_module) {
  std::vector<uint32_t> frames;
  const auto add = [&](std::string_view file, std::string_view function) {
    frames.push_back(
        trace.stacks.InternFrame({trace.strings.Intern(file), trace.strings.Intern(function), 1}));
  };
  add("server.py", name);
  if (in_module) add("/x/torch/nn/modules/module.py", "_call_impl");
  add("server.py", "main");
  return trace.stacks.InternStack(frames);
}

TEST(ServerBudget, IsReadAtTheLargestCache) {
  Recording recording;
  const uint32_t load = ServerStack(recording.trace(), "load", false);
  const uint32_t cache = ServerStack(recording.trace(), "_allocate_kv_cache", false);
  constexpr uint64_t kMiB = 1 << 20;
  recording.SegmentAlloc(kMiB, 100 * kMiB);
  recording.Stack(load).Alloc(kMiB, 10 * kMiB);                         // weights
  recording.Alloc(11 * kMiB, 7 * kMiB).Free(11 * kMiB, 7 * kMiB);       // the profile run
  recording.Stack(cache).Alloc(11 * kMiB, kMiB).Free(11 * kMiB, kMiB);  // a cache to try
  recording.Stack(load).Alloc(11 * kMiB, 2 * kMiB);                     // a buffer
  recording.Stack(cache).Alloc(13 * kMiB, 20 * kMiB).Alloc(33 * kMiB, 20 * kMiB);
  recording.Stack(load).Alloc(53 * kMiB, 30 * kMiB);
  const std::optional<ServerBudget> budget = FindServerBudget(recording.Build());
  ASSERT_TRUE(budget.has_value());
  EXPECT_EQ(budget->weights, MiB(12));
  EXPECT_EQ(budget->profile, MiB(5));
  EXPECT_EQ(budget->cache, MiB(40));
  EXPECT_EQ(budget->tensors, 2);
  EXPECT_EQ(budget->graphs, Bytes());
}

TEST(ServerBudget, HasThePrivatePoolsThatCameAfterTheCache) {
  Recording recording;
  Trace& trace = recording.trace();
  trace.layout.has_event_pool_id = true;
  trace.pools = {PoolId(), PoolId{1, 1}};
  const auto in_pool = [&](EventKind kind, uint64_t address, Bytes size) {
    recording.Add(kind, address, size.value());
    trace.devices[0].events.kept().back().pool = 1;
  };
  recording.SegmentAlloc(1 << 20, 40 << 20);
  in_pool(EventKind::kSegmentAlloc, 100 << 20, MiB(8));
  in_pool(EventKind::kSegmentFree, 100 << 20, MiB(8));
  recording.Stack(ServerStack(trace, "_allocate_kv_cache", false)).Alloc(1 << 20, 30 << 20);
  in_pool(EventKind::kSegmentAlloc, 100 << 20, MiB(2));
  in_pool(EventKind::kSegmentAlloc, 200 << 20, MiB(4));
  in_pool(EventKind::kSegmentFree, 100 << 20, MiB(2));
  EXPECT_EQ(FindServerBudget(recording.Build())->graphs, MiB(6));
}

TEST(ServerBudget, OfAModelThatMakesItsOwnCacheIsNone) {
  Recording recording;
  recording.SegmentAlloc(1 << 20, 20 << 20);
  recording.Stack(ServerStack(recording.trace(), "_allocate_kv_cache", true))
      .Alloc(1 << 20, 10 << 20);
  EXPECT_FALSE(FindServerBudget(recording.Build()).has_value());
}

}  // namespace
}  // namespace memreplay
