#include "report/run/run_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sim/model/allocator.h"

namespace memreplay {
namespace {

// Holds what it was given.
class Held final : public Allocator {
 public:
  explicit Held(MemoryState state) : state_(std::move(state)) {}
  absl::Status Apply(const Event&, Observer&) override { return absl::OkStatus(); }
  absl::Status ApplySettings(std::string_view) override { return absl::OkStatus(); }
  absl::Status SetMemoryFraction(double) override { return absl::OkStatus(); }
  const MemoryStats& statistics() const override { return stats_; }
  MemoryState Segments() const override { return state_; }
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)>) const override {}
  void CheckInvariants() const override {}

 private:
  MemoryState state_;
  MemoryStats stats_;
};

Event Make(EventKind kind, uint64_t address, uint64_t size, AllocationId id = kNoAllocation) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.address = Address(address);
  event.size = Bytes(size);
  event.block_size = Bytes(size);
  return event;
}

Schedule Empty() {
  auto trace = std::make_shared<Trace>();
  trace->devices.emplace_back();
  trace->streams = {StreamHandle(0), StreamHandle(7)};
  return Schedule::Build(trace, 0);
}

TEST(RunLog, ARangeThatLosesItsMiddleBecomesTwo) {
  const Schedule schedule = Empty();
  RunLogObserver observer(schedule, true);
  observer.OnEvent(Make(EventKind::kSegmentMap, 1000, 600));
  observer.OnEvent(Make(EventKind::kSegmentMap, 1600, 400));
  observer.OnEvent(Make(EventKind::kSegmentUnmap, 1200, 600));
  const RunLog& log = observer.log();
  ASSERT_EQ(log.ranges.size(), 4u);
  EXPECT_EQ(log.ranges[0].end, 3u);
  EXPECT_EQ(log.ranges[1].end, 3u);
  EXPECT_EQ(log.ranges[2].address, Address(1000));
  EXPECT_EQ(log.ranges[2].size, Bytes(200));
  EXPECT_EQ(log.ranges[2].begin, 3u);
  EXPECT_EQ(log.ranges[2].end, RunLog::kNever);
  EXPECT_EQ(log.ranges[3].address, Address(1800));
  EXPECT_EQ(log.ranges[3].size, Bytes(200));
  for (const RunLog::Range& range : log.ranges) EXPECT_TRUE(range.is_expandable);
}

TEST(RunLog, TheFirstBlockTellsTheKindOfASegment) {
  const Schedule schedule = Empty();
  RunLogObserver observer(schedule, true);
  observer.OnEvent(Make(EventKind::kSegmentMap, 0, MiB(20).value()));
  observer.OnEvent(Make(EventKind::kAlloc, 0, 512));
  observer.OnEvent(Make(EventKind::kSegmentMap, MiB(64).value(), MiB(2).value()));
  observer.OnEvent(Make(EventKind::kAlloc, MiB(64).value(), MiB(2).value()));
  ASSERT_EQ(observer.log().ranges.size(), 2u);
  EXPECT_FALSE(observer.log().ranges[0].is_large);
  EXPECT_TRUE(observer.log().ranges[1].is_large);
}

TEST(RunLog, TheStartIsBeforeTheFirstEvent) {
  MemoryState start(1);
  start[0].address = Address(4096);
  start[0].total_size = Bytes(2048);
  start[0].stream = StreamHandle(7);
  start[0].blocks.resize(3);
  start[0].blocks[0] = {.address = Address(4096),
                        .size = Bytes(512),
                        .requested_size = Bytes(100),
                        .state = BlockState::kAllocated};
  start[0].blocks[1].address = Address(4608);
  start[0].blocks[1].size = Bytes(1024);
  start[0].blocks[2] = {.address = Address(5632),
                        .size = Bytes(512),
                        .requested_size = Bytes(512),
                        .state = BlockState::kPendingFree};
  const Schedule schedule = Empty();
  Held held(start);
  RunLogObserver observer(schedule, true);
  observer.OnStart({}, held);
  const RunLog& log = observer.log();
  EXPECT_EQ(log.start_ranges, 1u);
  ASSERT_EQ(log.start_allocations, 2u);
  EXPECT_EQ(log.allocations[0].requested_size, Bytes(100));
  EXPECT_EQ(log.allocations[0].stream, 1u);
  EXPECT_FALSE(log.allocations[0].starts_pending);
  EXPECT_TRUE(log.allocations[1].starts_pending);
}

// A free that fits no allocation is kept as an event, and nothing else.
TEST(RunLog, AFreeOfNothing) {
  const Schedule schedule = Empty();
  RunLogObserver observer(schedule, true);
  observer.OnEvent(Make(EventKind::kFree, 4096, 512, 3));
  const RunLog& log = observer.log();
  EXPECT_EQ(log.kinds, std::vector<EventKind>{EventKind::kMark});
  EXPECT_TRUE(log.freed.empty());
  ASSERT_EQ(log.others.size(), 1u);
  EXPECT_EQ(log.others[0].what.address, Address(4096));
}

}  // namespace
}  // namespace memreplay
