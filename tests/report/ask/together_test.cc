#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "report/ask/job.h"
#include "report/text/render.h"

namespace memreplay {
namespace {

// Returns a sweep of one device; the first of `peaks` is that of the current settings. A peak below
// 0 is refused.
proto::Report SweepOf(const std::string& file,
                      const std::vector<std::pair<std::string, int64_t>>& peaks, int64_t ooms = 0) {
  proto::Report report;
  report.set_file(file);
  proto::Sweep& sweep = *report.add_devices()->mutable_sweep();
  for (const auto& [conf, peak] : peaks) {
    proto::SweepRow& row = *sweep.add_rows();
    row.set_conf(conf);
    if (peak < 0) row.set_refused("not taken");
    row.set_peak_reserved_bytes(peak);
    row.set_ooms(ooms);
  }
  *sweep.mutable_current() = sweep.rows(0);
  sweep.set_variable("PYTORCH_HIP_ALLOC_CONF");
  return report;
}

TEST(Together, TheLeastOfTheGreatest) {
  // Setting b is best for the first and c for the second; a is never best and best for both.
  const std::vector<proto::Report> reports = {
      SweepOf("x", {{"", 100}, {"a", 60}, {"b", 50}, {"c", 90}}),
      SweepOf("y", {{"", 100}, {"a", 60}, {"b", 80}, {"c", 40}})};
  const proto::Together together = CompareTogether(reports);
  ASSERT_EQ(together.rows_size(), 4);
  EXPECT_EQ(together.rows(0).conf(), "a");
  EXPECT_NE(RenderTogether(together, 1).find("export PYTORCH_HIP_ALLOC_CONF=a\n"),
            std::string::npos);
  EXPECT_EQ(together.rows(0).peak_reserved_bytes(), 60);
  EXPECT_EQ(together.rows(0).sum_peak_reserved_bytes(), 120);
  EXPECT_EQ(together.rows(1).conf(), "b");
  EXPECT_EQ(together.rows(1).worst_device(), 1);
  EXPECT_EQ(together.rows(1).device_peak_bytes(0), 50);
  EXPECT_EQ(together.rows(3).conf(), "");
  EXPECT_EQ(together.devices(1).peak_reserved_bytes(), 100);
}

TEST(Together, WhatOneReleaseRefusesIsNotCompared) {
  const std::vector<proto::Report> reports = {SweepOf("x", {{"", 100}, {"a", 10}}),
                                              SweepOf("y", {{"", 100}, {"a", -1}})};
  const proto::Together together = CompareTogether(reports);
  ASSERT_EQ(together.rows_size(), 1);
  EXPECT_EQ(together.rows(0).conf(), "");
}

// Nothing can be tried on a recording without events. What it holds counts, under any settings.
TEST(Together, WhatHasNoEventsStaysAsItIs) {
  proto::Report report;
  report.set_file("state");
  proto::Sweep& sweep = *report.add_devices()->mutable_sweep();
  sweep.set_searched(true);
  sweep.mutable_current()->set_peak_reserved_bytes(90);
  for (const bool first : {true, false}) {
    std::vector<proto::Report> reports = {SweepOf("x", {{"", 100}, {"a", 60}})};
    reports.insert(first ? reports.begin() : reports.end(), report);
    const proto::Together together = CompareTogether(reports);
    ASSERT_EQ(together.rows_size(), 2);
    EXPECT_EQ(together.rows(0).conf(), "a");
    EXPECT_EQ(together.rows(0).peak_reserved_bytes(), 90);
    EXPECT_EQ(together.rows(0).sum_peak_reserved_bytes(), 150);
    EXPECT_EQ(together.rows(0).device_peak_bytes(first ? 0 : 1), 90);
    EXPECT_EQ(together.devices(first ? 0 : 1).peak_reserved_bytes(), 90);
    EXPECT_EQ(together.devices(first ? 0 : 1).own_best_peak_reserved_bytes(), 90);
  }
  EXPECT_TRUE(Untried(report, std::vector<std::string>{"", "a"}).empty());
}

TEST(Together, WhatWasTriedAloneIsNotTriedAgain) {
  proto::Report report = SweepOf("x", {{"", 100}, {"a", 60}, {"refused", -1}});
  report.mutable_devices(0)->mutable_sweep()->set_searched(true);
  report.mutable_devices(0)->mutable_sweep()->mutable_current()->set_conf("in_force");
  EXPECT_EQ(Untried(report, {"", "a", "b", "in_force", "refused"}),
            (std::vector<std::string>{"b"}));
  AddRows(SweepOf("x", {{"b", 50}}), &report);
  EXPECT_TRUE(Untried(report, {"", "b"}).empty());
  EXPECT_EQ(report.devices(0).sweep().rows(0).conf(), "");  // its own best is the first still
}

// A row that needs a call is not one of the settings alone.
TEST(Together, RowsThatNeedACallAreNotCompared) {
  proto::Report report = SweepOf("x", {{"", 100}, {"a", 60}, {"a", 20}});
  proto::Sweep& sweep = *report.mutable_devices(0)->mutable_sweep();
  sweep.mutable_rows(2)->set_memory_fraction(0.5);
  sweep.mutable_rows(2)->set_needs_call(true);
  const proto::Together together = CompareTogether({report});
  ASSERT_EQ(together.rows_size(), 2);
  EXPECT_EQ(together.rows(0).peak_reserved_bytes(), 60);
}

TEST(Together, WhatFailsTheSecondTimeIsCounted) {
  proto::Report failed;
  failed.set_error("took too long");
  std::vector<proto::Report> reports = {SweepOf("x", {{"", 100}})};
  AddRows(failed, &reports[0]);
  EXPECT_EQ(CompareTogether(reports).failed(), 1);
}

TEST(Together, Outliers) {
  std::vector<proto::Report> reports;
  for (const int64_t peak : {100, 101, 99, 100, 150}) {
    reports.push_back(SweepOf("x", {{"", peak}}));
  }
  const proto::Together together = CompareTogether(reports);
  EXPECT_NEAR(together.devices(1).score(), 0.67, 0.01);
  EXPECT_NEAR(together.devices(4).score(), 33.7, 0.1);
  EXPECT_TRUE(together.devices(4).is_outlier());
  EXPECT_FALSE(together.devices(1).is_outlier());
  EXPECT_NE(RenderTogether(together, 1).find("x  <- outlier"), std::string::npos);
}

TEST(Together, OutOfMemoryIsWorseThanAnyPeak) {
  std::vector<proto::Report> reports = {SweepOf("x", {{"", 100}, {"a", 10}})};
  reports[0].mutable_devices(0)->mutable_sweep()->mutable_rows(1)->set_ooms(1);
  EXPECT_EQ(CompareTogether(reports).rows(0).conf(), "");
}

TEST(Together, AFileWithoutAnAnswerIsCounted) {
  proto::Report failed;
  failed.set_error("cut off");
  const std::vector<proto::Report> reports = {failed, SweepOf("x", {{"", 100}})};
  const proto::Together together = CompareTogether(reports);
  EXPECT_EQ(together.files(), 2);
  EXPECT_EQ(together.failed(), 1);
  EXPECT_EQ(together.devices_size(), 1);
  EXPECT_EQ(RenderTogether(together, 5).substr(0, 28), "2 files, 1 failed, 1 device:");
}

TEST(Together, Candidates) {
  proto::Report odd = SweepOf("y", {{"in_force", 100}, {"z", -1}, {"f", 70}});
  odd.mutable_devices(0)->mutable_sweep()->mutable_rows(2)->set_needs_call(true);
  const std::vector<proto::Report> reports = {SweepOf("x", {{"a", 100}, {"b", 50}}), odd};
  EXPECT_EQ(CommonCandidates(reports), (std::vector<std::string>{"", "a", "b", "in_force"}));
}

}  // namespace
}  // namespace memreplay
