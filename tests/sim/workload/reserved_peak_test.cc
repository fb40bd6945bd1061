#include <gtest/gtest.h>

#include "sim/workload/peak_holdings.h"
#include "tests/trace/support/recording.h"

namespace memreplay {
namespace {

constexpr uint64_t kFirstSegment = 0x500000000000;

TEST(AllocationsBeforePeak, EndWhereMostIsLiveOfTheMomentsWithMostReserved) {
  testing::Recording recording;
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t at = kFirstSegment + (i << 30);
    recording.SegmentAlloc(at, 20 << 20).Alloc(at, 12 << 20);
  }
  EXPECT_EQ(AllocationsBeforePeak(recording.Build()), 7u);
}

// What was live when the recording began is freed first, so that less than nothing seems live.
TEST(AllocationsBeforePeak, AreFoundBelowAnUnknownStart) {
  testing::Recording recording;
  for (uint64_t i = 0; i < 100; ++i) recording.Free(kFirstSegment + (i << 30), 12 << 20);
  recording.Alloc(kFirstSegment, 12 << 20);
  EXPECT_EQ(AllocationsBeforePeak(recording.Build()), 0u);
}

}  // namespace
}  // namespace memreplay
