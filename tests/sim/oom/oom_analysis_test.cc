// Runs the schedules of examples/mechanisms, and checks the verdict that the public report of each
// deserves and what the counterfactuals must say about it.
#include "sim/oom/oom_analysis.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

struct Analysed {
  std::shared_ptr<const Trace> trace;
  std::optional<OomAnalysis> analysis;
};

Analysed AnalyseFile(const std::string& path, const SettingsRequest& request = {}) {
  Analysed run;
  auto trace = OpenTrace(path);
  EXPECT_TRUE(trace.ok()) << trace.status();
  run.trace = std::make_shared<const Trace>(*std::move(trace));
  const Schedule schedule = Schedule::Build(run.trace, 0);
  const auto settings = ResolveSettings(*run.trace, request);
  EXPECT_TRUE(settings.ok()) << settings.status();
  auto analysis = AnalyseOom(schedule, *settings);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  run.analysis = *std::move(analysis);
  return run;
}

Analysed Analyse(const std::string& name, const SettingsRequest& request = {}) {
  return AnalyseFile("examples/mechanisms/" + name + ".txtpb", request);
}

const Counterfactual* Find(const OomAnalysis& analysis, ChangeKind kind,
                           const std::string& change = "") {
  for (const Counterfactual& answer : analysis.counterfactuals) {
    if (answer.kind == kind && (change.empty() || answer.change == change)) return &answer;
  }
  return nullptr;
}

// Checks what holds for any analysis: parts of the state add up, the control runs out, and the
// minimum of additional memory is the minimum.
void ExpectSound(const Analysed& run) {
  const OomAnalysis& analysis = *run.analysis;
  EXPECT_TRUE(analysis.reproduced);
  Bytes reserved;
  for (const SegmentInfo& segment : analysis.scene.at) reserved += segment.total_size;
  EXPECT_EQ(reserved, analysis.scene.reserved);
  const Counterfactual* more = Find(analysis, ChangeKind::kMemory);
  ASSERT_NE(more, nullptr);
  ASSERT_TRUE(more->survives);
  const Bytes capacity = *run.trace->total_memory;
  for (const auto& [extra, survives] :
       {std::pair(more->amount, true), std::pair(more->amount - MiB(2), false)}) {
    SettingsRequest request;
    request.capacity = capacity + extra;
    const Schedule schedule = Schedule::Build(run.trace, 0);
    const auto again = FindOom(schedule, *ResolveSettings(*run.trace, request));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(!again->has_value(), survives) << extra.value();
  }
}

TEST(AnalyseOom, SplitGiantIsFragmentation) {
  const Analysed run = Analyse("split_giant");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  const OomAnalysis& analysis = *run.analysis;
  EXPECT_EQ(analysis.verdict, OomVerdict::kFragmentation);
  EXPECT_EQ(analysis.scene.event, 8u);
  EXPECT_EQ(analysis.scene.oom.size, Bytes(11643387904));
  EXPECT_EQ(analysis.obtainable, GiB(16) - MiB(12));
  EXPECT_TRUE(Find(analysis, ChangeKind::kSetting, "expandable_segments:True")->survives);
  EXPECT_TRUE(Find(analysis, ChangeKind::kSetting, "max_split_size_mb:512")->survives);
  EXPECT_FALSE(Find(analysis, ChangeKind::kEmptyCache)->served);
  EXPECT_FALSE(Find(analysis, ChangeKind::kRetry)->served);
}

TEST(AnalyseOom, StrandedWeightsAreFragmentation) {
  const Analysed run = Analyse("stranded_weights");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  EXPECT_EQ(run.analysis->verdict, OomVerdict::kFragmentation);
  EXPECT_TRUE(Find(*run.analysis, ChangeKind::kSetting, "max_split_size_mb:32")->survives);
}

TEST(AnalyseOom, APendingFreeIsSeenByARetry) {
  const Analysed run = Analyse("pending_free");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  EXPECT_EQ(run.analysis->verdict, OomVerdict::kPendingFree);
  EXPECT_TRUE(Find(*run.analysis, ChangeKind::kRetry)->served);
}

TEST(AnalyseOom, ALeakIsOneStackStepByStep) {
  const Analysed run = Analyse("leak");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  const OomAnalysis& analysis = *run.analysis;
  EXPECT_EQ(analysis.verdict, OomVerdict::kLeak);
  EXPECT_EQ(analysis.growth.median, MiB(96).signed_value());
  EXPECT_EQ(analysis.steps.allocations_per_step, 9u);
  ASSERT_TRUE(analysis.leak.has_value());
  EXPECT_EQ(analysis.leak->bytes, static_cast<int64_t>(analysis.leak->steps) * (96 << 20));
  EXPECT_EQ(analysis.leak->stack, analysis.holdings.front().stack);
}

// The same steps, but all that they left behind is freed later: more than the device has is
// live at once, and nothing leaks.
TEST(AnalyseOom, WhatTheFileFreesLaterIsNoLeak) {
  std::ifstream leak("examples/mechanisms/leak.txtpb");
  const std::string path = testing::TempDir() + "/freed_later.txtpb";
  std::ofstream(path) << leak.rdbuf() << R"(
program {
  repeat: "40"
  index: "step"
  body { free: "loss[step]" }
}
)";
  const Analysed run = AnalyseFile(path);
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  EXPECT_FALSE(run.analysis->leak.has_value());
  EXPECT_EQ(run.analysis->verdict, OomVerdict::kExceedsDevice);
}

TEST(AnalyseOom, LayersOfOneForwardPassAreNoLeak) {
  const Analysed run = Analyse("shortage");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  const OomAnalysis& analysis = *run.analysis;
  // What it has live at once, later, is more than the device has.
  EXPECT_EQ(analysis.verdict, OomVerdict::kExceedsDevice);
  ASSERT_TRUE(analysis.too_large.has_value());
  EXPECT_GE(analysis.too_large->event, analysis.scene.event);
  EXPECT_GE(analysis.steps.count(), kMinSteps);  // the layers repeat ...
  EXPECT_FALSE(analysis.leak.has_value());       // ... and what they keep is no leak
  for (const Counterfactual& answer : analysis.counterfactuals) {
    if (answer.kind == ChangeKind::kSetting) {
      EXPECT_FALSE(answer.served) << answer.change;
    }
  }
}

TEST(AnalyseOom, AStrayStreamIsCuredByOneStream) {
  const Analysed run = Analyse("stray_stream");
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  EXPECT_EQ(run.analysis->verdict, OomVerdict::kFragmentation);
  const Counterfactual* merged = Find(*run.analysis, ChangeKind::kOneStream);
  ASSERT_NE(merged, nullptr);
  EXPECT_TRUE(merged->survives);
}

TEST(AnalyseOom, PoolsOfGraphsAreCuredByOnePool) {
  const std::string path = testing::TempDir() + "/pools.txtpb";
  std::ofstream(path) << R"(
format: "memsched"
version: 1
device { total: 8589934592 }
pools { name: "first" }
pools { name: "second" }
program { pool: "first" body { temp: "x" bytes: "3GiB" site: "captured" } }
program { pool: "second" body { temp: "y" bytes: "2GiB" site: "captured" } }
program { alloc: "batch" bytes: "4GiB" site: "batch" }
)";
  const Analysed run = AnalyseFile(path);
  ASSERT_TRUE(run.analysis.has_value());
  ExpectSound(run);
  EXPECT_EQ(run.analysis->verdict, OomVerdict::kFragmentation);
  const Counterfactual* merged = Find(*run.analysis, ChangeKind::kOnePool);
  ASSERT_NE(merged, nullptr);
  EXPECT_TRUE(merged->survives);
  EXPECT_EQ(merged->peak_reserved, GiB(7));
  EXPECT_EQ(Find(*Analyse("stray_stream").analysis, ChangeKind::kOnePool), nullptr);
}

TEST(AnalyseOom, GrowingPairFillsTheCardButSurvives) {
  EXPECT_FALSE(Analyse("growing_pair").analysis.has_value());
}

TEST(AnalyseOom, NeverAdvisesWhatIsOn) {
  SettingsRequest request;
  request.conf = "max_split_size_mb:11200";
  request.torch = "2.11";
  request.capacity = GiB(11);
  const Analysed run = Analyse("split_giant", request);
  ASSERT_TRUE(run.analysis.has_value());
  for (const Counterfactual& answer : run.analysis->counterfactuals) {
    EXPECT_NE(answer.change, "max_split_size_mb:11200");
  }
  request.conf = "expandable_segments:True";
  request.capacity = GiB(8);
  const Analysed expandable = Analyse("split_giant", request);
  ASSERT_TRUE(expandable.analysis.has_value());
  EXPECT_EQ(Find(*expandable.analysis, ChangeKind::kSetting, "expandable_segments:True"), nullptr);
  EXPECT_EQ(Find(*expandable.analysis, ChangeKind::kSetting, "max_split_size_mb:128"), nullptr);
}

TEST(AnalyseOom, AReleaseWithoutExpandableSegmentsIsNotToldToUseThem) {
  SettingsRequest request;
  request.torch = "2.0";
  const Analysed run = Analyse("split_giant", request);
  ASSERT_TRUE(run.analysis.has_value());
  EXPECT_EQ(Find(*run.analysis, ChangeKind::kSetting, "expandable_segments:True"), nullptr);
}

}  // namespace
}  // namespace memreplay
