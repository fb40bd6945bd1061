#include "sim/observe/usage.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "sim/observe/timeline.h"

namespace memreplay {
namespace {

Event Make(EventKind kind, uint64_t size, uint64_t block_size = 0) {
  Event event;
  event.kind = kind;
  event.size = Bytes(size);
  event.block_size = Bytes(block_size);
  return event;
}

TEST(UsageTest, CountsTheFourFiguresAndTheirPeaks) {
  UsageObserver usage;
  usage.OnEvent(Make(EventKind::kSegmentAlloc, MiB(2).value()));   // 0
  usage.OnEvent(Make(EventKind::kAlloc, 1000, 1024));              // 1
  usage.OnEvent(Make(EventKind::kAlloc, 2000, 2048));              // 2
  usage.OnEvent(Make(EventKind::kFree, 2000, 2048));               // 3
  usage.OnEvent(Make(EventKind::kSegmentMap, MiB(20).value()));    // 4
  usage.OnEvent(Make(EventKind::kAlloc, 500, 512));                // 5: active peak
  usage.OnEvent(Make(EventKind::kFreeCompleted, 2000, 2048));      // 6
  usage.OnEvent(Make(EventKind::kSegmentUnmap, MiB(20).value()));  // 7
  usage.OnEvent(Make(EventKind::kResetPeak, 0));                   // 8: of no effect here
  EXPECT_EQ(usage.events(), 9u);
  EXPECT_EQ(usage.current().allocated(), Bytes(1536));
  EXPECT_EQ(usage.current().active(), Bytes(1536));
  EXPECT_EQ(usage.current().requested(), Bytes(1500));
  EXPECT_EQ(usage.current().reserved(), MiB(2));
  EXPECT_EQ(usage.peak().allocated(), Bytes(3072));
  EXPECT_EQ(usage.peak_event(UsageKind::kAllocated), 2u);
  EXPECT_EQ(usage.peak().active(), Bytes(3584));
  EXPECT_EQ(usage.peak_event(UsageKind::kActive), 5u);
  EXPECT_EQ(usage.peak().requested(), Bytes(3500));
  EXPECT_EQ(usage.peak().reserved(), MiB(22));
  EXPECT_EQ(usage.peak_event(UsageKind::kReserved), 4u);
}

TEST(UsageTest, TheFirstOfEqualPeaksCounts) {
  UsageObserver usage;
  for (int i = 0; i < 3; ++i) {
    usage.OnEvent(Make(EventKind::kAlloc, 512, 512));
    usage.OnEvent(Make(EventKind::kFree, 512, 512));
  }
  EXPECT_EQ(usage.peak_event(UsageKind::kAllocated), 0u);
  EXPECT_EQ(usage.peak_event(UsageKind::kReserved), UsageObserver::kAtStart);
}

TEST(UsageTest, BeginsAtAGivenState) {
  SegmentInfo segment;
  segment.total_size = MiB(2);
  const auto add = [&](uint64_t size, uint64_t requested, BlockState state) {
    BlockInfo block;
    block.size = Bytes(size);
    block.requested_size = Bytes(requested);
    block.state = state;
    segment.blocks.push_back(block);
  };
  add(1024, 1000, BlockState::kAllocated);
  add(512, 7, BlockState::kPendingFree);
  add(4096, 4000, BlockState::kInactive);
  UsageObserver usage(UsageOf({segment, segment}));
  EXPECT_EQ(usage.current().allocated(), Bytes(2048));
  EXPECT_EQ(usage.current().active(), Bytes(3072));
  EXPECT_EQ(usage.current().requested(), Bytes(2014));
  EXPECT_EQ(usage.peak().reserved(), MiB(4));
  EXPECT_EQ(usage.peak_event(UsageKind::kActive), UsageObserver::kAtStart);
}

TEST(UsageTest, SizesStandInForUnknownBlocks) {
  UsageObserver usage;
  usage.OnEvent(Make(EventKind::kAlloc, 1000));
  EXPECT_EQ(usage.current().active(), Bytes(1000));
}

TEST(UsageTest, NamesArePyTorchs) {
  EXPECT_EQ(UsageName(UsageKind::kAllocated), "allocated_bytes");
  EXPECT_EQ(UsageName(UsageKind::kRequested), "requested_bytes");
}

// A saw whose peaks are one event wide, at any resolution.
TEST(TimelineTest, KeepsEveryExtreme) {
  for (const size_t capacity : {2, 7, 64, 100000}) {
    UsageObserver usage;
    TimelineObserver timeline(usage, capacity);
    std::vector<uint64_t> values;
    uint64_t value = 0;
    const auto feed = [&](EventKind kind, uint64_t size) {
      const Event event = Make(kind, size, size);
      usage.OnEvent(event);
      timeline.OnEvent(event);
      value = kind == EventKind::kAlloc ? value + size : value - size;
      values.push_back(value);
    };
    for (uint64_t i = 1; i <= 5000; ++i) {
      const uint64_t size = i * 7919 % 104729 + 1;
      feed(EventKind::kAlloc, size);
      if (i % 3 != 0) feed(EventKind::kFree, size);
    }
    ASSERT_LE(timeline.buckets().size(), capacity);
    uint64_t next = 0;
    for (const TimelineBucket& bucket : timeline.buckets()) {
      ASSERT_EQ(bucket.first_event, next);
      uint64_t lowest = ~uint64_t{0}, highest = 0;
      for (uint64_t i = bucket.first_event; i <= bucket.last_event(); ++i) {
        lowest = std::min(lowest, values[i]);
        highest = std::max(highest, values[i]);
      }
      ASSERT_EQ(bucket.Lowest().allocated(), Bytes(lowest));
      ASSERT_EQ(bucket.Highest().allocated(), Bytes(highest));
      ASSERT_EQ(bucket.last.usage.allocated(), Bytes(values[bucket.last_event()]));
      next = bucket.last_event() + 1;
    }
    EXPECT_EQ(next, values.size());
    if (capacity == 100000) {
      EXPECT_EQ(timeline.events_per_bucket(), 1u);
    }
  }
}

}  // namespace
}  // namespace memreplay
