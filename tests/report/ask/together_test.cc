#include "report/ask/together.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "report/text/render_together.h"

namespace memreplay {
namespace {

// A sweep of one device; the first of `peaks` is in force. A peak below 0 is refused.
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
  return report;
}

TEST(Together, TheLeastOfTheGreatest) {
  // b is best for the first, c for the second; a is never best and best for both.
  const std::vector<proto::Report> reports = {
      SweepOf("x", {{"", 100}, {"a", 60}, {"b", 50}, {"c", 90}}),
      SweepOf("y", {{"", 100}, {"a", 60}, {"b", 80}, {"c", 40}})};
  const proto::Together together = CompareTogether(reports, reports);
  ASSERT_EQ(together.rows_size(), 4);
  EXPECT_EQ(together.rows(0).conf(), "a");
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
  const proto::Together together = CompareTogether(reports, reports);
  ASSERT_EQ(together.rows_size(), 1);
  EXPECT_EQ(together.rows(0).conf(), "");
}

TEST(Together, WhatWasTriedAloneIsTakenFromThere) {
  const proto::Report alone = SweepOf("x", {{"", 100}, {"a", 60}, {"b", 50}});
  proto::Report taken = alone;
  EXPECT_FALSE(TakeRows(alone, {"", "c"}, &taken));
  EXPECT_EQ(taken.devices(0).sweep().rows_size(), 3);
  EXPECT_TRUE(TakeRows(alone, {"", "b"}, &taken));
  ASSERT_EQ(taken.devices(0).sweep().rows_size(), 2);
  EXPECT_EQ(taken.devices(0).sweep().rows(1).peak_reserved_bytes(), 50);
}

TEST(Together, OutOfMemoryIsWorseThanAnyPeak) {
  std::vector<proto::Report> reports = {SweepOf("x", {{"", 100}, {"a", 10}})};
  reports[0].mutable_devices(0)->mutable_sweep()->mutable_rows(1)->set_ooms(1);
  EXPECT_EQ(CompareTogether(reports, reports).rows(0).conf(), "");
}

TEST(Together, AFileWithoutAnAnswerIsCounted) {
  proto::Report failed;
  failed.set_error("cut off");
  const std::vector<proto::Report> reports = {failed, SweepOf("x", {{"", 100}})};
  const proto::Together together = CompareTogether(reports, reports);
  EXPECT_EQ(together.files(), 2);
  EXPECT_EQ(together.failed(), 1);
  EXPECT_EQ(together.devices_size(), 1);
  EXPECT_EQ(RenderTogether(together, 5).substr(0, 28), "2 files, 1 failed, 1 device:");
}

TEST(Together, Candidates) {
  proto::Report odd = SweepOf("y", {{"in_force", 100}, {"z", -1}, {"f", 70}});
  odd.mutable_devices(0)->mutable_sweep()->mutable_rows(2)->set_memory_fraction(0.5);
  const std::vector<proto::Report> reports = {SweepOf("x", {{"a", 100}, {"b", 50}}), odd};
  EXPECT_EQ(CommonCandidates(reports), (std::vector<std::string>{"", "a", "b", "in_force"}));
}

}  // namespace
}  // namespace memreplay
