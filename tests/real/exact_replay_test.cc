// Replays public snapshots of real scripts exactly. They are no part of this project:
// MEMREPLAY_SHARED names the folder that holds data/snapshots, and without it the tests are
// skipped.
//   bazel test //tests/real:real_test --test_env=MEMREPLAY_SHARED=...
#include "sim/recording/exact_replay.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "trace/formats/open_trace.h"

namespace memreplay {
namespace {

struct Expectation {
  const char* file;
  bool is_cold;
  uint64_t events;
  uint64_t start_allocations;
  uint64_t revealed;      // hidden extents that an address shows
  uint64_t undetermined;  // hidden extents with several that agree
  uint64_t blocks;        // of the final state
};

void PrintTo(const Expectation& expectation, std::ostream* out) { *out << expectation.file; }

constexpr Expectation kFiles[] = {
    {"decomfl_train_cold", true, 23105, 0, 0, 0, 468},
    {"uoft_before_train_cold", true, 162, 0, 0, 0, 142},
    {"silmont_cold", true, 97, 0, 0, 0, 20},
    {"nesta_oom_cold", true, 1299, 0, 0, 0, 307},
    {"bcrafton_train_warm", false, 6486, 447, 7, 15, 550},
    {"charan_train_warm", false, 9670, 113, 0, 0, 148},
    {"kkaitlyn_compile_annotations", false, 8507, 124, 0, 0, 378},
    {"kkaitlyn_fullstep_empty_cache", false, 19770, 325, 0, 0, 1525},
    {"magma_train_warm", false, 5163, 229, 0, 1, 455},
    {"octree_inference_warm", false, 3797, 37, 0, 0, 452},
    {"selectn_warm_torch21", false, 4496, 396, 0, 0, 415},
    {"silmont_forward_bf16", false, 2811, 137, 0, 0, 178},
    {"wedson_128_inference", false, 3840, 223, 0, 0, 230},
    {"wedson_128_training", false, 19136, 664, 6, 0, 918},
    {"wedson_512_training", false, 22332, 664, 33, 0, 1041},
};

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
      .count();
}

// Returns null, with a message, if there are no files.
std::shared_ptr<const Trace> Open(const std::string& name) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) return nullptr;
  absl::StatusOr<Trace> trace =
      OpenTrace(std::string(shared) + "/data/snapshots/" + name + ".pickle");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? std::make_shared<const Trace>(*std::move(trace)) : nullptr;
}

// The release of the layouts and choices of these files; ResolveSettingsByReplay() finds it too.
const TorchProfile& RecordedBy() { return **FindTorchProfile("2.11"); }

class RealExactReplay : public ::testing::TestWithParam<Expectation> {};

TEST_P(RealExactReplay, EveryEventAndFinalBlockMatches) {
  const Expectation& expected = GetParam();
  const std::shared_ptr<const Trace> trace = Open(expected.file);
  if (trace == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  const auto begin = std::chrono::steady_clock::now();
  const Schedule schedule = Schedule::Build(trace, 0);
  const double build_ms = Milliseconds(begin);
  const auto replay = std::chrono::steady_clock::now();
  const ExactReplayResult result = ReplayAsRecorded(schedule, AllocatorConfig(), RecordedBy());
  std::cout << expected.file << ": " << result.matched_events << "/" << result.compared_events
            << " events, " << result.final_blocks.matched << "/" << result.final_blocks.compared
            << " blocks, revealed " << result.start.revealed << ", hidden "
            << result.start.hidden.size() << ", build " << build_ms << " ms, replay "
            << Milliseconds(replay) << " ms\n";

  EXPECT_EQ(schedule.is_cold(), expected.is_cold);
  EXPECT_EQ(result.recorded_events, expected.events);
  EXPECT_EQ(result.compared_events, expected.events);
  EXPECT_EQ(result.matched_events, expected.events) << result.exactness_reason;
  EXPECT_EQ(result.exact_until_event, expected.events);
  EXPECT_EQ(result.exactness_reason, "");
  EXPECT_FALSE(result.first_divergence.has_value());
  EXPECT_EQ(result.final_blocks.compared, expected.blocks);
  EXPECT_TRUE(result.final_blocks.exact()) << result.final_blocks.first_mismatch;
  EXPECT_FALSE(schedule.diagnostics().has_errors());
  EXPECT_EQ(schedule.start_allocations().size(), expected.start_allocations);
  EXPECT_EQ(result.start.contradiction, "");
  EXPECT_EQ(result.start.revealed, expected.revealed);
  EXPECT_EQ(result.start.diagnostics.count(DiagnosticKind::kStartStateUnderdetermined),
            expected.undetermined);
}

INSTANTIATE_TEST_SUITE_P(Snapshots, RealExactReplay, ::testing::ValuesIn(kFiles),
                         [](const auto& parameters) { return std::string(parameters.param.file); });

TEST(RealSnapshots, EmptyCacheIsToldFromTheStacks) {
  // 430 segments released between two configurations, directly before a malloc
  // that obtained one.
  const std::shared_ptr<const Trace> trace = Open("kkaitlyn_fullstep_empty_cache");
  if (trace == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  const Schedule schedule = Schedule::Build(trace, 0);
  EXPECT_EQ(schedule.diagnostics().count(DiagnosticKind::kInferredEmptyCache), 1u);
  EXPECT_EQ(schedule.requests()[0].kind, EventKind::kEmptyCache);
  EXPECT_EQ(schedule.recorded_begin()[1], 430u);
  // One segment released in the course of the malloc that then ran out (event
  // 1116), five at the program's end.
  const std::shared_ptr<const Trace> oom = Open("nesta_oom_cold");
  ASSERT_NE(oom, nullptr);
  const Diagnostics diagnostics = Schedule::Build(oom, 0).diagnostics();
  ASSERT_EQ(diagnostics.count(DiagnosticKind::kInferredEmptyCache), 1u);
  EXPECT_EQ(diagnostics.places(DiagnosticKind::kInferredEmptyCache)[0].position, 1294u);
}

TEST(RealSnapshots, TrimmedByHand) {
  // 50 events of a longer recording; the final state is another moment's.
  const std::shared_ptr<const Trace> trace = Open("drisspg_trimmed");
  if (trace == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  const Schedule schedule = Schedule::Build(trace, 0);
  const ExactReplayResult result = ReplayAsRecorded(schedule, AllocatorConfig(), RecordedBy());
  EXPECT_EQ(result.matched_events, 50u) << result.exactness_reason;
  EXPECT_EQ(result.exact_until_event, 50u);
  EXPECT_FALSE(result.final_blocks.exact());
}

TEST(RealSnapshots, WithoutEventsTheStartIsTheEnd) {
  for (const char* file : {"albi2_settings_two_devices", "muduard_no_trace",
                           "verl_private_pools_no_trace", "yiyi_oom_torch20"}) {
    SCOPED_TRACE(file);
    const std::shared_ptr<const Trace> trace = Open(file);
    if (trace == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
    for (size_t device = 0; device < trace->devices.size(); ++device) {
      const Schedule schedule = Schedule::Build(trace, device);
      EXPECT_FALSE(schedule.is_cold());
      const ExactReplayResult result =
          ReplayAsRecorded(schedule, AllocatorConfig(), RecordedBy(), {.check_invariants = true});
      EXPECT_EQ(result.matched_events, result.recorded_events) << result.exactness_reason;
      EXPECT_GT(result.final_blocks.compared, 0u);
      EXPECT_TRUE(result.final_blocks.exact()) << result.final_blocks.first_mismatch;
    }
  }
}

}  // namespace
}  // namespace memreplay
