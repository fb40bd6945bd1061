
#include <gtest/gtest.h>

#include <cstdint>

#include "report/words/verdict.h"

namespace memreplay {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(ImpossibleFigures, AReplayReservesWhatItAllocatesAndNoMoreThanThereIs) {
  proto::DeviceReport device;
  device.set_mode(proto::Mode::what_if);
  device.set_capacity_bytes(12 * kGiB);
  device.set_peak_allocated_bytes(10 * kGiB);
  device.set_peak_reserved_bytes(12 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device), "");
  EXPECT_TRUE(FindFaults(device).empty());
  device.set_peak_reserved_bytes(9 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device),
            "the figures of the replay are impossible: 10.0 GiB allocated, 9.00 GiB reserved");
  device.set_peak_reserved_bytes(52 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device),
            "the figures of the replay are impossible: 10.0 GiB allocated, 52.0 GiB reserved on a "
            "device of 12.0 GiB");
  EXPECT_EQ(FindFaults(device).size(), 1U);
}

TEST(ImpossibleFigures, OfRows) {
  proto::DeviceReport device;
  device.set_capacity_bytes(12 * kGiB);
  proto::Counterfactual& change = *device.mutable_oom()->add_counterfactuals();
  change.set_kind(proto::Counterfactual::memory);
  change.set_peak_reserved_bytes(13 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device), "") << "of a larger device";
  change.set_kind(proto::Counterfactual::setting);
  EXPECT_NE(ImpossibleFigures(device), "");
  device.clear_oom();

  device.mutable_advice()->set_goal_bytes(12 * kGiB);
  proto::Advice::Row& row = *device.mutable_advice()->add_rows();
  row.set_peak_reserved_bytes(53 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device), "") << "of a device without a limit";
  row.set_survives(true);
  EXPECT_NE(ImpossibleFigures(device), "");
  device.clear_advice();

  proto::SweepRow& setting = *device.mutable_sweep()->add_rows();
  setting.set_peak_reserved_bytes(13 * kGiB);
  EXPECT_NE(ImpossibleFigures(device), "");
  setting.set_peak_reserved_bytes(12 * kGiB);
  EXPECT_EQ(ImpossibleFigures(device), "");

  proto::Fits::Probe& probe = *device.mutable_fits()->add_rows()->add_probes();
  probe.set_capacity_bytes(kGiB);
  probe.set_peak_reserved_bytes(2 * kGiB);
  EXPECT_NE(ImpossibleFigures(device), "");
}

}  // namespace
}  // namespace memreplay
