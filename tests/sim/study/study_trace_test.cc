#include "sim/study/study_trace.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
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
  const absl::StatusOr<StudiedTrace> studied = StudyTrace(trace, request);
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

}  // namespace
}  // namespace memreplay
