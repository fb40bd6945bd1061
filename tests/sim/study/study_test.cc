#include "sim/study/study.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/sim/support/made_recording.h"

namespace memreplay {
namespace {

using testing::Made;

std::shared_ptr<const Trace> Recorded() {
  return std::make_shared<const Trace>(testing::MakeRecording(Made{.seed = 3, .requests = 300}));
}

Study StudyOf(const std::shared_ptr<const Trace>& trace) {
  return Study(trace, 0, *ResolveSettings(*trace, {}), {});
}

TEST(Study, FindsEverythingOnce) {
  const Study study = StudyOf(Recorded());
  EXPECT_EQ(&study.schedule(), &study.schedule());
  EXPECT_EQ(&study.AsRecorded(), &study.AsRecorded());
  EXPECT_EQ(&study.card(), &study.AsRecorded().exact.card);
  EXPECT_EQ(&study.start(), &study.AsRecorded().exact.start.segments);
}

TEST(Study, ARunThatWasMadeIsTheSame) {
  const Study study = StudyOf(Recorded());
  ReplaySettings settings = study.settings();
  const absl::StatusOr<WhatIfResult> first = study.Run(settings);
  settings.config.conf = "other words";
  const absl::StatusOr<WhatIfResult> again = study.Run(settings);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->peak, again->peak);
  EXPECT_TRUE(first->segments.empty());
  settings.config.expandable_segments = true;
  const absl::StatusOr<WhatIfResult> other = study.Run(settings);
  ASSERT_TRUE(other.ok());
  EXPECT_GT(other->calls.maps, 0u);
  EXPECT_EQ(first->calls.maps, 0u);
}

TEST(Study, TheControlIsARun) {
  const Study study = StudyOf(Recorded());
  const absl::StatusOr<std::optional<Control>> control = study.FindControl();
  ASSERT_TRUE(control.ok() && control->has_value());
  EXPECT_EQ((*control)->peak_reserved, study.Run(study.OnCard(study.settings()))->peak.reserved());
}

TEST(Study, AProgramRecordsNothing) {
  Trace program;
  program.is_program = true;
  program.streams = {StreamHandle(0)};
  program.devices.emplace_back();
  const Study study = StudyOf(std::make_shared<const Trace>(std::move(program)));
  EXPECT_TRUE(study.start().empty());
  EXPECT_FALSE(study.card().refused().has_value());
  const absl::StatusOr<std::optional<Control>> control = study.FindControl();
  ASSERT_TRUE(control.ok());
  EXPECT_FALSE(control->has_value());
}

}  // namespace
}  // namespace memreplay
