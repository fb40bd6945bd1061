// Tests what is said of changes that were found by editing a recording.
#include "report/ask/advise_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "report/text/render.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "tests/sim/remedy/training.h"

namespace memreplay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

proto::Advice AdviceFor(uint64_t mib) {
  const Schedule schedule = testing::TwoBlocks().Build();
  SettingsRequest request;
  request.torch = "2.6";
  request.capacity = MiB(mib);
  const auto settings = ResolveSettings(schedule.trace(), request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  const Study study(schedule, *settings);
  const auto report = AskAdvice(study, "");
  EXPECT_TRUE(report.ok()) << report.status();
  return report->advice();
}

// An edit is an estimate: with checkpoints, 98 MiB are needed.
TEST(AdviseRecordingTest, FitsOnlyWithAMargin) {
  const proto::Advice tight = AdviceFor(110);
  EXPECT_TRUE(tight.rows(0).survives());
  EXPECT_FALSE(tight.rows(0).fits());
  const std::string text = RenderAdvice("a.pickle", tight);
  EXPECT_THAT(text, HasSubstr("\nIt may fit with activation checkpointing"));
  EXPECT_THAT(text, HasSubstr("which is an estimate and may be a fifth too low"));
  EXPECT_THAT(text, Not(HasSubstr("It fits")));
}

// A setting changes no request, so its replay is exact.
TEST(AdviseRecordingTest, ASettingThatSurvivesFits) {
  const proto::Advice advice = AdviceFor(150);
  EXPECT_TRUE(advice.as_is().fits());
  for (const proto::Advice::Row& row : advice.rows()) {
    const double needs = static_cast<double>(row.peak_reserved_bytes());
    const bool has_margin = 1.25 * needs <= static_cast<double>(advice.goal_bytes());
    EXPECT_EQ(row.fits(), row.survives() && (row.remedies(0) == "settings" || has_margin))
        << row.change();
  }
}

}  // namespace
}  // namespace memreplay
