#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "sim/recording/hypotheses.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

constexpr std::string_view kRelease = "2.7";  // its events do not name their pools

RecordingFollowed Follow(const std::shared_ptr<const Trace>& trace, const Made& made,
                         const InferredPools& pools = {}) {
  return FollowRecording(Schedule::Build(trace, 0, pools), made.config, testing::ProfileOf(made));
}

std::optional<Explanation> FindPools(const std::shared_ptr<const Trace>& trace, const Made& made,
                                     const RecordingFollowed& untold) {
  const Schedule plain = Schedule::Build(trace, 0);
  return FindGonePools({trace, 0, plain, made.config, testing::ProfileOf(made), untold});
}

TEST(FindGonePools, RecordingsFollowAgain) {
  size_t puzzles = 0;
  size_t solved = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Made made = {.seed = seed,
                       .requests = 600,
                       .torch = kRelease,
                       .empty_caches = true,
                       .pools = 3,
                       .release_pools = true,
                       .event_pools = false};
    const std::shared_ptr<Trace> trace = testing::WithoutGonePools(made);
    const RecordingFollowed untold = Follow(trace, made);
    if (untold.exact) continue;
    ASSERT_TRUE(MayHaveGonePools(*trace));
    ++puzzles;
    const std::optional<Explanation> found = FindPools(trace, made, untold);
    if (!found.has_value()) continue;
    ++solved;
    EXPECT_TRUE(Follow(trace, made, found->pools).exact) << seed;
    EXPECT_NE(found->notes.at(0).find("assumed to belong to private pools"), std::string::npos)
        << found->notes[0];
    EXPECT_GE(found->pools.pools.size(), trace->pools.size());
  }
  EXPECT_GT(puzzles, 20u);
  EXPECT_EQ(solved, puzzles);
}

TEST(FindGonePools, NothingIsToldOfAChoiceThatNoPoolExplains) {
  const Made made = {.requests = 300, .torch = kRelease, .empty_caches = true};
  auto trace = std::make_shared<Trace>(testing::MakeRecording(made));
  std::vector<Event>& events = trace->devices[0].events.kept();
  Event& event = *std::find_if(events.begin() + 100, events.end(),
                               [](const Event& e) { return e.kind == EventKind::kAlloc; });
  event.address = event.address + Bytes(512);
  const RecordingFollowed untold = Follow(trace, made);
  ASSERT_FALSE(untold.exact);
  EXPECT_FALSE(FindPools(trace, made, untold).has_value());
  EXPECT_EQ(trace->pools.size(), 1u);
}

TEST(MayHaveGonePools, NotWhereTheFileNamesThemOrNothingWasReleased) {
  Made made = {.torch = "2.14", .empty_caches = true, .pools = 2};
  EXPECT_FALSE(MayHaveGonePools(testing::MakeRecording(made)));
  made = {.requests = 50, .torch = kRelease};
  EXPECT_FALSE(MayHaveGonePools(testing::MakeRecording(made)));
}

}  // namespace
}  // namespace memreplay
