#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "sim/recording/exact_replay.h"
#include "sim/recording/hypotheses.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

RecordingFollowed FollowUnder(const std::shared_ptr<const Trace>& trace,
                              const AllocatorConfig& config, const Made& made) {
  return FollowRecording(Schedule::Build(trace, 0), config, testing::ProfileOf(made));
}

// What a file without notes has.
std::shared_ptr<Trace> WithoutNotes(const Made& made) {
  auto trace = std::make_shared<Trace>(testing::MakeRecording(made));
  trace->devices[0].notes.clear();
  return trace;
}

std::optional<Explanation> FindChanges(const std::shared_ptr<const Trace>& trace, const Made& made,
                                       const RecordingFollowed& without) {
  const Schedule plain = Schedule::Build(trace, 0);
  return FindChangedSettings({trace, 0, plain, made.config, testing::ProfileOf(made), without});
}

TEST(FindChangedSettings, MostStretchesOfOtherSettingsAreFound) {
  for (const std::string_view other :
       {"max_split_size_mb:20", "expandable_segments:True", "roundup_power2_divisions:4"}) {
    size_t puzzles = 0;
    size_t solved = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const std::string back =
          other == "expandable_segments:True" ? "expandable_segments:False" : "";
      Made made = {.seed = seed, .requests = 600, .torch = "2.13", .empty_caches = true};
      made.config.conf = back;
      made.changes = {std::string(other), back};
      const std::shared_ptr<Trace> trace = WithoutNotes(made);
      const RecordingFollowed without = FollowUnder(trace, made.config, made);
      if (without.exact) continue;
      ++puzzles;
      ASSERT_TRUE(MayHaveChangedSettings(*trace));
      const std::optional<Explanation> found = FindChanges(trace, made, without);
      if (!found.has_value()) continue;
      ++solved;
      EXPECT_TRUE(FollowUnder(found->trace, *found->config, made).exact) << other << seed;
      EXPECT_FALSE(MayHaveChangedSettings(*found->trace));
      EXPECT_NE(found->notes.at(0).find("it is assumed that the script changed"),
                std::string::npos);
      EXPECT_TRUE(trace->devices[0].notes.empty());
    }
    EXPECT_GT(puzzles, 3u) << other;
    EXPECT_GT(solved * 2, puzzles) << other << ": " << solved << " of " << puzzles;
  }
}

TEST(FindChangedSettings, NothingIsToldOfAChoiceThatNoSettingsExplain) {
  const Made made = {.requests = 300, .torch = "2.13", .empty_caches = true};
  auto trace = std::make_shared<Trace>(testing::MakeRecording(made));
  std::vector<Event>& events = trace->devices[0].events.kept();
  Event& event = *std::find_if(events.begin() + 100, events.end(),
                               [](const Event& e) { return e.kind == EventKind::kAlloc; });
  event.address = event.address + Bytes(512);
  const RecordingFollowed without = FollowUnder(trace, made.config, made);
  ASSERT_FALSE(without.exact);
  EXPECT_FALSE(FindChanges(trace, made, without).has_value());
}

TEST(MayHaveChangedSettings, NotWhereTheyAreNotedOrTheDevicesAreTwo) {
  Made made = {.requests = 50, .torch = "2.13"};
  Trace trace = testing::MakeRecording(made);
  EXPECT_TRUE(MayHaveChangedSettings(trace));
  trace.devices.push_back(trace.devices[0]);
  EXPECT_FALSE(MayHaveChangedSettings(trace));
  made.changes = {"max_split_size_mb:20"};
  EXPECT_FALSE(MayHaveChangedSettings(testing::MakeRecording(made)));
}

}  // namespace
}  // namespace memreplay
