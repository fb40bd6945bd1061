// Checks how often a command builds a schedule, runs an allocator and opens its file: it finds
// nothing out twice. The linker puts the counters in front of the functions (--wrap).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/command.h"
#include "sim/run/replay.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"

#define SCHEDULE_BUILD                                                           \
  "_ZN9memreplay8Schedule5BuildESt10shared_ptrIKNS_5TraceEEmNS_13InferredPoolsE" \
  "RKSt8functionIFvS0_EE"
#define REPLAY                                                                                \
  "_ZN9memreplay8ReplayByEN4absl7debian311FunctionRefIFNS_9RunResultERNS_16CachingAllocatorE" \
  "RKNS_10RunOptionsEEEERKNS_10ReplayPlanERNS_6DeviceERNS_8ObserverES8_"
#define OPEN_TRACE "_ZN9memreplay9OpenTraceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

namespace memreplay {

struct Counts {
  int schedules = 0;
  int runs = 0;
  int files = 0;
};
Counts counts;

using TakeRecorded = std::function<void(Schedule)>;
Schedule RealBuild(std::shared_ptr<const Trace> trace, size_t device, InferredPools inferred,
                   const TakeRecorded& take) asm("__real_" SCHEDULE_BUILD);
Schedule WrapBuild(std::shared_ptr<const Trace> trace, size_t device, InferredPools inferred,
                   const TakeRecorded& take) asm("__wrap_" SCHEDULE_BUILD);
Schedule WrapBuild(std::shared_ptr<const Trace> trace, size_t device, InferredPools inferred,
                   const TakeRecorded& take) {
  ++counts.schedules;
  return RealBuild(std::move(trace), device, std::move(inferred), take);
}

using RunFunction = absl::FunctionRef<RunResult(CachingAllocator& allocator, const RunOptions&)>;
absl::StatusOr<ReplayResult> RealReplay(RunFunction run, const ReplayPlan& plan, Device& device,
                                        Observer& observer,
                                        const RunOptions& options) asm("__real_" REPLAY);
absl::StatusOr<ReplayResult> WrapReplay(RunFunction run, const ReplayPlan& plan, Device& device,
                                        Observer& observer,
                                        const RunOptions& options) asm("__wrap_" REPLAY);
absl::StatusOr<ReplayResult> WrapReplay(RunFunction run, const ReplayPlan& plan, Device& device,
                                        Observer& observer, const RunOptions& options) {
  ++counts.runs;
  return RealReplay(run, plan, device, observer, options);
}

absl::StatusOr<Trace> RealOpen(const std::string& file) asm("__real_" OPEN_TRACE);
absl::StatusOr<Trace> WrapOpen(const std::string& file) asm("__wrap_" OPEN_TRACE);
absl::StatusOr<Trace> WrapOpen(const std::string& file) {
  ++counts.files;
  return RealOpen(file);
}

namespace {

// A recording that began before the first allocation, of a layout that several releases write.
constexpr char kFile[] = "tests/data/snapshots/torch-2.6/training.pickle";

Counts CountOf(absl::StatusOr<int> (*run)(const CommandLine& line), std::vector<std::string> args) {
  args.insert(args.begin(), kFile);
  args.push_back("--jobs=1");
  counts = Counts();
  testing::internal::CaptureStdout();
  const absl::StatusOr<int> status = run({args});
  EXPECT_FALSE(testing::internal::GetCapturedStdout().empty());
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(counts.files, 1);
  EXPECT_EQ(counts.schedules, 1);
  return counts;
}

TEST(Counts, AReplayIsOneRun) { EXPECT_EQ(CountOf(RunReplay, {}).runs, 1); }

// The command runs the exact replay, the control and the what-if, the latter two with addresses in
// either order.
TEST(Counts, AReplayUnderOtherSettings) {
  EXPECT_EQ(CountOf(RunReplay, {"--conf=expandable_segments:True"}).runs, 5);
}

// The command runs the exact replay, the current settings, which are the control, and the other
// ones, with addresses in either order; it also finds why each reserves what it does.
TEST(Counts, ASweepOfOneSetting) {
  EXPECT_EQ(CountOf(RunSweep, {"--conf=expandable_segments:True"}).runs, 6);
}

// The command finds out which of the releases that write such files made it.
TEST(Counts, InspectReplaysOnceAtMost) { EXPECT_EQ(CountOf(RunInspect, {}).runs, 1); }

}  // namespace
}  // namespace memreplay
