#include "report/ask/job.h"

#include <gtest/gtest.h>

#include <vector>

#include "report/text/render.h"

namespace memreplay {
namespace {

// Position of the only outlier; -1: there is none, -2: there are several.
int OutlierOf(const proto::Job& job) {
  int found = -1;
  for (int i = 0; i < job.rows_size(); ++i) {
    if (job.rows(i).is_outlier()) found = found == -1 ? i : -2;
  }
  return found;
}

proto::Job Job(const std::vector<int64_t>& reserved) {
  JobFold job;
  for (const int64_t bytes : reserved) {
    proto::Report report;
    report.set_command("replay");
    report.set_file("rank");
    proto::DeviceReport& device = *report.add_devices();
    device.set_mode(proto::Mode::what_if);
    device.set_peak_reserved_bytes(bytes);
    job.Add(report);
  }
  return job.Finish();
}

TEST(Job, WorstSpreadAndOutlier) {
  const proto::Job job = Job({1000, 1001, 999, 1500, 1000});
  EXPECT_EQ(job.files(), 5);
  EXPECT_EQ(job.worst_row(), 3);
  EXPECT_EQ(OutlierOf(job), 3);
  EXPECT_EQ(job.spread_bytes(), 501);
}

TEST(Job, TheOutlierMayBeTheSmallest) {
  const proto::Job job = Job({1000, 400, 1000, 1001});
  EXPECT_EQ(job.worst_row(), 3);
  EXPECT_EQ(OutlierOf(job), 1);
}

TEST(Job, SeveralMayStandOut) {
  const proto::Job job = Job({1000, 1500, 1000, 1001, 1000, 400, 1000});
  EXPECT_EQ(OutlierOf(job), -2);
  EXPECT_GT(job.rows(1).score(), 3.5);
  EXPECT_LT(job.rows(5).score(), -3.5);
  EXPECT_NE(RenderJobText(job).text.find("outliers rank, device 0; rank, device 0."),
            std::string::npos);
}

TEST(Job, NoneStandsOut) {
  EXPECT_EQ(OutlierOf(Job({1000, 1005, 995, 1009})), -1);  // within 1 %
  EXPECT_EQ(OutlierOf(Job({1000, 1300, 700, 1200})), -1);  // all differ
  EXPECT_EQ(OutlierOf(Job({1000, 5000})), -1);             // of two, neither
  EXPECT_EQ(Job({}).worst_row(), -1);
}

TEST(Job, OutOfMemoryIsWorseThanAnyPeak) {
  JobFold job;
  for (const int64_t ooms : {0, 1}) {
    proto::Report report;
    proto::DeviceReport& device = *report.add_devices();
    device.set_ooms(ooms);
    device.set_peak_reserved_bytes(ooms == 0 ? 100 : 50);
    job.Add(report);
  }
  EXPECT_EQ(job.Finish().worst_row(), 1);
}

TEST(Job, AFileWithoutAnAnswerIsARowWithItsError) {
  proto::Report failed;
  failed.set_file("b");
  failed.set_error("b: cut off");
  proto::Report report;
  report.add_devices()->set_peak_reserved_bytes(100);
  JobFold fold;
  for (const proto::Report& each : {failed, report, failed, report, report}) fold.Add(each);
  EXPECT_EQ(fold.status(), 2);
  const proto::Job job = fold.Finish();
  EXPECT_EQ(job.files(), 5);
  EXPECT_EQ(job.failed(), 2);
  ASSERT_EQ(job.rows_size(), 5);
  EXPECT_EQ(job.rows(2).error(), "b: cut off");
  EXPECT_EQ(job.rows(2).device(), -1);
  EXPECT_EQ(job.worst_row(), 1);
  EXPECT_EQ(OutlierOf(job), -1);
  EXPECT_NE(RenderJobText(job).text.find("failed: b: cut off"), std::string::npos);
}

// One file has one peak, whichever command reports it; where a simulated device runs out of memory
// there is none.
TEST(Job, ComparesThePeakOfARecordingThatRanOut) {
  proto::Report report;
  proto::DeviceReport& device = *report.add_devices();
  device.set_mode(proto::Mode::oom);
  device.set_peak_reserved_bytes(218);
  device.mutable_oom()->set_verdict(proto::Verdict::true_shortage);
  device.mutable_oom()->set_recorded(true);
  device.mutable_oom()->mutable_use()->set_reserved_bytes(217);
  JobFold fold;
  fold.Add(report);
  device.mutable_oom()->set_recorded(false);
  fold.Add(report);
  const proto::Job job = fold.Finish();
  EXPECT_EQ(job.rows(0).reserved_bytes(), 218);
  EXPECT_EQ(job.rows(1).reserved_bytes(), 217);
}

}  // namespace
}  // namespace memreplay
