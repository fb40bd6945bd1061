// Tests sweeps of real recordings; exact_replay_test.cc says where they come from.
#include "sim/whatif/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "report/device/inventory.h"
#include "sim/study/study.h"
#include "sim/workload/lifetimes.h"
#include "sim/workload/packing.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

struct Case {
  const char* file;
  bool is_refused;  // a request, as recorded
  bool runs_out;    // likewise
};

class RealSweep : public testing::TestWithParam<Case> {};

TEST_P(RealSweep, IsSound) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  auto opened = OpenTrace(std::string(shared) + "/data/snapshots/" + GetParam().file);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto trace = std::make_shared<const Trace>(*std::move(opened));
  const Study study(Schedule::Build(trace, 0), *ResolveSettings(*trace, {}));
  const Schedule& schedule = study.schedule();
  const ReplaySettings settings = study.OnCard(study.settings());
  EXPECT_EQ(settings.capacity.has_value(), GetParam().is_refused);
  const SweepContext context = {study, settings, StartPolicy::kRecorded, 2};
  const std::vector<SweepRow> rows = SearchConf(context);
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), RanksBefore));

  const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
  const PeakLive live = PeakLiveOf(lifetimes);
  EXPECT_LE(live.requested, live.rounded);
  EXPECT_LE(live.rounded, BestPacking(lifetimes).height);
  const auto current = std::find_if(rows.begin(), rows.end(), [&](const SweepRow& row) {
    return row.config == settings.config && row.fraction == settings.fraction;
  });
  ASSERT_NE(current, rows.end());
  // The simulated device of the same size does what the recorded one did.
  EXPECT_EQ(current->peak_reserved.signed_value(),
            DescribeContents(*trace, 0).peaks.peak_reserved_bytes());
  EXPECT_EQ(current->ooms > 0, GetParam().runs_out);
  for (const SweepRow& row : rows) {
    SCOPED_TRACE(row.conf);
    EXPECT_EQ(row.refused, "");
    EXPECT_GE(row.peak_reserved, row.peak_allocated);
    EXPECT_GE(row.at_peak.reserved(), row.at_peak.allocated());
    EXPECT_EQ(row.first_oom.has_value(), row.ooms > 0);
    // A true shortage is a shortage under all settings.
    if (GetParam().runs_out) {
      EXPECT_GT(row.ooms, 0u);
      EXPECT_LE(row.peak_reserved, *settings.capacity);
    } else {
      EXPECT_EQ(row.ooms, 0u);
      EXPECT_GE(row.peak_reserved, live.requested);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RealSweep,
                         testing::Values(Case{"decomfl_train_cold.pickle", false, false},
                                         Case{"nesta_oom_cold.pickle", true, true},
                                         Case{"silmont_cold.pickle", false, false},
                                         Case{"kkaitlyn_fullstep_empty_cache.pickle", false,
                                              false}),
                         [](const testing::TestParamInfo<Case>& tested) {
                           const std::string file = tested.param.file;
                           return file.substr(0, file.find('_'));
                         });

}  // namespace
}  // namespace memreplay
