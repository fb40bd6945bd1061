// Tests the way from runs on devices of several kinds to the text of `memreplay gpu`.
#include "report/ask/gpu.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/device/device_report.h"
#include "report/text/render.h"
#include "report/words/render_json.h"
#include "report/words/verdict.h"
#include "tests/golden.h"
#include "tests/sim/support/awkward_device.h"

namespace memreplay {
namespace {

using testing::AwkwardDevice;

Event Make(EventKind kind, uint64_t handle, Bytes size = Bytes()) {
  Event event;
  event.kind = kind;
  event.address = Address(handle);
  event.size = size;
  return event;
}

// Two equal cached blocks at request 4, and later more than 128 MiB hold.
std::shared_ptr<const Trace> Tie() {
  auto trace = std::make_shared<Trace>();
  trace->format = "flat_jsonl";
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  trace->devices.emplace_back().events = {Make(EventKind::kAlloc, 1, MiB(40)),
                                          Make(EventKind::kAlloc, 2, MiB(40)),
                                          Make(EventKind::kFree, 1),
                                          Make(EventKind::kFree, 2),
                                          Make(EventKind::kAlloc, 3, MiB(40)),
                                          Make(EventKind::kAlloc, 4, MiB(100)),
                                          Make(EventKind::kFree, 3)};
  return trace;
}

proto::Report ReportOn(const AwkwardDevice::Ways& ways, RunBackend backend = RunBackend::kNative,
                       const std::string& conf = "", int repetitions = 1) {
  const std::shared_ptr<const Trace> trace = Tie();
  const Schedule schedule = Schedule::Build(trace, 0);
  SettingsRequest request;
  request.torch = "2.6";
  request.conf = conf;
  request.order = AddressOrder::kUpwards;  // as an AwkwardDevice that is not descending
  const auto settings = ResolveSettings(*trace, request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  RunPlan plan;
  plan.schedule = &schedule;
  plan.settings = &*settings;
  plan.backend = backend;

  AwkwardDevice first(ways);
  const auto predicted = RunSimulated(plan, first.TotalMemory(), first.FreeMemory());
  EXPECT_TRUE(predicted.ok());
  GpuRunContext context;
  context.card.set_name("Fictional 8 GiB");
  context.card.set_driver("1.0");
  context.card.set_total_bytes(first.TotalMemory().signed_value());
  context.card.set_free_bytes(first.FreeMemory().signed_value());
  std::vector<MeasuredRun> measured;
  for (int i = 0; i < repetitions; ++i) {
    AwkwardDevice device(ways);
    auto run = RunOnDevice(plan, device);
    EXPECT_TRUE(run.ok());
    auto held = CompareWithPrediction(plan, *predicted, *std::move(run));
    EXPECT_TRUE(held.ok());
    measured.push_back(*std::move(held));
    proto::GpuRepetition& repetition = context.repetitions.emplace_back();
    repetition.set_wall_ns(2'500'000 + 1000 * i);
    repetition.set_driver_ns(1'200'000);
    repetition.set_driver_calls(4);
  }
  proto::GpuTime& time = context.times.emplace_back();
  time.set_call("cuMemAlloc");
  time.set_size(40 << 20);
  time.set_count(2);
  time.set_total_ns(900'000);
  time.set_median_ns(450'000);
  time.set_min_ns(400'000);
  time.set_max_ns(500'000);
  proto::Report report = StartReport("gpu", "tie.jsonl", *trace);
  *report.add_devices() = ReportGpu(plan, {}, *predicted, measured, std::move(context));
  AddFaults(&report);
  return report;
}

TEST(GpuReport, AnHonestDeviceIsConfirmed) {
  const proto::Report report = ReportOn({});
  ExpectGolden("tests/report/golden/gpu_confirmed.txt", RenderText(report).text);
  ExpectGolden("tests/report/golden/gpu_confirmed.json", RenderJson(report, JsonLayout::kIndented));
  EXPECT_FALSE(HasFaults(report));
}

TEST(GpuReport, AnotherLayoutIsExplained) {
  AwkwardDevice::Ways ways;
  ways.descending = true;
  ways.overhead = MiB(2);
  const proto::Report report = ReportOn(ways, RunBackend::kNative, "", 3);
  ExpectGolden("tests/report/golden/gpu_another_layout.txt", RenderText(report).text);
  EXPECT_FALSE(HasFaults(report));
}

TEST(GpuReport, ARefusalIsWrong) {
  AwkwardDevice::Ways ways;
  ways.refuse_from = 2;
  const proto::Report report = ReportOn(ways);
  ExpectGolden("tests/report/golden/gpu_refused.txt", RenderText(report).text);
  EXPECT_TRUE(HasFaults(report));
}

TEST(GpuReport, OutOfMemoryAtTheSameRequestIsConfirmed) {
  AwkwardDevice::Ways ways;
  ways.capacity = MiB(128);
  const proto::Report report = ReportOn(ways, RunBackend::kNative, "expandable_segments:True");
  ExpectGolden("tests/report/golden/gpu_oom.txt", RenderText(report).text);
  EXPECT_FALSE(HasFaults(report));
  EXPECT_EQ(report.devices(0).gpu().measured().ooms_size(), 1);
}

TEST(GpuReport, AsyncComparesRequestsOnly) {
  const proto::Report report = ReportOn({}, RunBackend::kAsync);
  ExpectGolden("tests/report/golden/gpu_async.txt", RenderText(report).text);
  EXPECT_FALSE(HasFaults(report));
}

TEST(GpuReport, ABlockThatDoesNotHoldItsPatternIsWrong) {
  const std::shared_ptr<const Trace> trace = Tie();
  const Schedule schedule = Schedule::Build(trace, 0);
  const auto settings = ResolveSettings(*trace, {});
  ASSERT_TRUE(settings.ok());
  RunPlan plan;
  plan.schedule = &schedule;
  plan.settings = &*settings;
  const auto predicted = RunSimulated(plan, GiB(8), GiB(8));
  ASSERT_TRUE(predicted.ok());
  AwkwardDevice device({});
  auto run = RunOnDevice(plan, device);
  ASSERT_TRUE(run.ok());
  auto measured = CompareWithPrediction(plan, *predicted, *std::move(run));
  ASSERT_TRUE(measured.ok());
  std::vector<MeasuredRun> runs;
  runs.push_back(*std::move(measured));

  GpuRunContext context;
  context.verification.emplace().set_blocks_checked(4);
  context.verification->set_bad_blocks(1);
  proto::Report report = StartReport("gpu", "tie.jsonl", *trace);
  *report.add_devices() = ReportGpu(plan, {}, *predicted, runs, context);
  AddFaults(&report);
  EXPECT_FALSE(HasFaults(report));
  EXPECT_NE(RenderText(report).text.find("4 blocks (0 B) filled and checked, 1 bad"),
            std::string::npos);

  context.verify_faults = {"block 3 holds the pattern of block 1"};
  *report.mutable_devices(0) = ReportGpu(plan, {}, *predicted, runs, context);
  AddFaults(&report);
  EXPECT_TRUE(HasFaults(report));
  EXPECT_NE(RenderText(report).text.find("PROBLEM: block 3 holds the pattern of block 1"),
            std::string::npos);
}

TEST(GpuReport, WhereNothingIsReplayedNothingIsConfirmed) {
  proto::Report report = ReportOn({});
  report.mutable_devices(0)->mutable_gpu()->mutable_with_addresses()->Clear();
  EXPECT_NE(RenderText(report).text.find("nothing to confirm"), std::string::npos);
}

TEST(ShortageSentence, HasTheNumbers) {
  const std::shared_ptr<const Trace> trace = Tie();
  const Schedule schedule = Schedule::Build(trace, 0);
  RunPlan plan;
  plan.schedule = &schedule;
  EXPECT_EQ(
      ShortageSentence(plan, {180 << 20, false, MiB(64), 5}),
      "the file needs 180 MiB (188,743,680 bytes) and the device has 64.0 MiB (67,108,864 bytes) "
      "free; memory would run out at request 5");
}

}  // namespace
}  // namespace memreplay
