// Runs public snapshots of real scripts on a device that places memory quite unlike the simulated
// one: its addresses explain every difference. The snapshots are no part of this project:
// MEMREPLAY_SHARED names the folder that holds data/snapshots.
//   bazel test //tests/real:real_test --test_env=MEMREPLAY_SHARED=...
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/confirm/device_run.h"
#include "tests/sim/support/awkward_device.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

// As before, a recording of up to PyTorch 2.11: the lowest address first.
constexpr char kTorch[] = "2.11";

TEST(RealConfirmation, AddressesExplainEveryDifference) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(shared) + "/data/snapshots")) {
    if (entry.path().extension() == ".pickle") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());

  uint64_t runs = 0;
  uint64_t parted = 0;
  uint64_t decisions = 0;
  for (const std::string& file : files) {
    absl::StatusOr<Trace> opened = OpenTrace(file);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto trace = std::make_shared<const Trace>(*std::move(opened));
    for (size_t index = 0; index < trace->devices.size(); ++index) {
      const Schedule schedule = Schedule::Build(trace, index);
      for (const char* conf : {"", "expandable_segments:True"}) {
        SettingsRequest request;
        request.torch = kTorch;
        request.conf = conf;
        const auto settings = ResolveSettings(*trace, request);
        ASSERT_TRUE(settings.ok()) << settings.status();
        RunPlan plan;
        plan.schedule = &schedule;
        plan.settings = &*settings;
        testing::AwkwardDevice device(
            {.capacity = GiB(512), .explicit_completion = true, .descending = true});
        PlanStart(StartPolicy::kRecorded, GiB(512), GiB(512), &plan);
        const auto predicted = RunSimulated(plan, GiB(512), GiB(512));
        ASSERT_TRUE(predicted.ok()) << predicted.status();
        auto run = RunOnDevice(plan, device);
        ASSERT_TRUE(run.ok()) << run.status();
        const auto measured = CompareWithPrediction(plan, *predicted, *std::move(run));
        ASSERT_TRUE(measured.ok()) << measured.status();
        EXPECT_TRUE(measured->agrees()) << file << ", device " << index << ", '" << conf << "'";
        EXPECT_EQ(measured->placed_peak_reserved, measured->run.peak.reserved());
        EXPECT_EQ(measured->run.used_at_end, 0);
        ++runs;
        parted += !measured->as_predicted.all_equal();
        decisions += measured->with_addresses.compared;
      }
    }
  }
  std::cout << files.size() << " files, " << runs << " runs, " << decisions << " decisions; in "
            << parted << " runs the layout decided between equals\n";
  EXPECT_GT(parted, 0u);
}

}  // namespace
}  // namespace memreplay
