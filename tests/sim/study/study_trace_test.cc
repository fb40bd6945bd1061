#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/study/study.h"
#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

// Many equal blocks, so that 2.11 (lowest address), 2.12 (oldest block) and 2.13
// on (oldest segment) choose differently.
std::shared_ptr<Trace> Recording(std::string_view release) {
  const Made made = {.seed = 7, .torch = release, .few_sizes = true};
  Trace trace = testing::MakeRecording(made);
  trace.layout = testing::LayoutOf(testing::ProfileOf(made));
  return std::make_shared<Trace>(std::move(trace));
}

absl::StatusOr<ReplaySettings> SettingsOf(const std::shared_ptr<const Trace>& trace,
                                          const SettingsRequest& request) {
  const absl::StatusOr<OpenedFile> studied = StudyTrace(trace, request);
  if (!studied.ok()) return studied.status();
  return studied->settings;
}

TEST(StudyTrace, TheRecordedChoicesTellReleasesOfOneLayoutApart) {
  for (const std::string_view release : {"2.11", "2.12"}) {
    const auto settings = SettingsOf(Recording(release), {});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->torch.profile->release, release);
    EXPECT_TRUE(settings->torch.inferred());
    EXPECT_TRUE(settings->as_recorded);
  }
}

// As tools write that know one layout only.
TEST(StudyTrace, WhereNoneOfItsLayoutIsRightAnotherReleaseMayBe) {
  Trace trace = testing::MakeRecording({.seed = 7, .torch = "2.13", .few_sizes = true});
  trace.layout = testing::LayoutOf(testing::ProfileOf({.torch = "2.11"}));
  const auto settings = SettingsOf(std::make_shared<Trace>(std::move(trace)), {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.reason, ProfileReason::kReproduces);
  EXPECT_EQ(settings->torch.rejected->release, "2.12");
}

TEST(StudyTrace, SaysWhatSpeaksAgainstTheNewest) {
  const auto settings = SettingsOf(Recording("2.11"), {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.profile->release, "2.11");
  EXPECT_EQ(settings->torch.reason, ProfileReason::kReproduces);
  EXPECT_EQ(settings->torch.rejected->release, "2.12");
  EXPECT_GT(settings->torch.rejected_at, 0u);
}

TEST(StudyTrace, TheNewestWhereAllReplayIt) {
  const Made made = {.requests = 5, .torch = "2.10"};
  Trace trace = testing::MakeRecording(made);
  trace.layout = testing::LayoutOf(testing::ProfileOf(made));
  const auto settings = SettingsOf(std::make_shared<Trace>(std::move(trace)), {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.profile->release, "2.12");
  EXPECT_EQ(settings->torch.reason, ProfileReason::kLayout);
  EXPECT_EQ(settings->torch.rejected, nullptr);
}

TEST(StudyTrace, WhatNoReleaseReplaysIsTakenAsTheOneThatComesFurthest) {
  const Made made = {.seed = 7, .torch = "2.11", .few_sizes = true};
  Trace trace = testing::MakeRecording(made);
  trace.layout = testing::LayoutOf(testing::ProfileOf(made));
  // No allocator would choose this address, late in the recording.
  std::vector<Event>& events = trace.devices[0].events.kept();
  Event& event = events[events.size() - 10];
  event.address = event.address + Bytes(512);
  const auto settings = SettingsOf(std::make_shared<Trace>(std::move(trace)), {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.profile->release, "2.11");
  EXPECT_EQ(settings->torch.reason, ProfileReason::kReproducesMost);
}

TEST(StudyTrace, WhatIsAskedForIsTaken) {
  SettingsRequest request;
  request.conf = "expandable_segments:True";
  auto settings = SettingsOf(Recording("2.11"), request);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.profile->release, "2.11");
  EXPECT_TRUE(settings->config.expandable_segments);
  EXPECT_FALSE(settings->as_recorded);
  request.torch = "2.14";
  settings = SettingsOf(Recording("2.11"), request);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->torch.profile->release, "2.14");
}

// As of a server that loads weights under other settings and then captures CUDA graphs.
TEST(StudyTrace, ChangedSettingsAndGonePoolsExplainARecordingTogether) {
  size_t puzzles = 0, solved = 0, together = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Made made = {.seed = seed,
                       .requests = 900,
                       .torch = "2.7",
                       .empty_caches = true,
                       .pools = 2,
                       .pools_from = 450,
                       .release_pools = true,
                       .event_pools = false,
                       .changes = {"roundup_power2_divisions:4", "", "", "", ""}};
    const std::shared_ptr<Trace> trace = testing::WithoutGonePools(made);
    trace->devices[0].notes.clear();
    trace->layout = testing::LayoutOf(testing::ProfileOf(made));
    if (FollowRecording(Schedule::Build(trace, 0), made.config, testing::ProfileOf(made)).exact) {
      continue;
    }
    ++puzzles;
    SettingsRequest release;
    release.torch = "2.7";
    release.torch_is_as_recorded = true;
    const absl::StatusOr<OpenedFile> studied = StudyTrace(trace, release);
    ASSERT_TRUE(studied.ok()) << studied.status();
    const RecordingFollowed followed =
        FollowRecording(studied->devices[0]->schedule(), studied->settings.recorded_config,
                        testing::ProfileOf(made));
    if (!followed.exact) continue;
    ++solved;
    std::string notes;
    for (const std::string& note : studied->settings.notes) notes += note;
    together += notes.find("it is assumed that the script changed") != std::string::npos &&
                notes.find("are assumed to belong to private pools") != std::string::npos;
  }
  EXPECT_GT(puzzles, 10u);
  EXPECT_GT(solved * 5, puzzles * 4);
  EXPECT_GT(together * 2, puzzles);
}

}  // namespace
}  // namespace memreplay
