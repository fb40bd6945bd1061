#include "record/card/model/pinned.h"

#include <gtest/gtest.h>

namespace memreplay::card {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kNever = UINT64_MAX;

TEST(HostAllocatorModel, RoundsUpAndKeeps) {
  HostAllocatorModel model({kNever, kNever});
  EXPECT_EQ(model.Take(1), 1u);
  EXPECT_EQ(model.Take(33 * kMiB), 64 * kMiB);
  EXPECT_EQ(model.Take(64 * kMiB), 64 * kMiB);
  model.Give(64 * kMiB);
  EXPECT_EQ(model.now(), 128 * kMiB + 1);
  EXPECT_EQ(model.Take(40 * kMiB), 64 * kMiB);
  EXPECT_EQ(model.peak(), 128 * kMiB + 1) << "the kept block serves it";
  model.Give(64 * kMiB);
  model.Empty();
  EXPECT_EQ(model.now(), 64 * kMiB + 1);
}

TEST(HostAllocatorModel, TakesTheBlockThatWasFreedLast) {
  HostAllocatorModel model({kMiB, kNever});
  EXPECT_EQ(model.Take(9 * kMiB), 9 * kMiB);
  EXPECT_EQ(model.Take(15 * kMiB), 15 * kMiB);
  EXPECT_EQ(model.Take(12 * kMiB), 12 * kMiB);
  EXPECT_EQ(model.Take(17 * kMiB), 17 * kMiB);
  for (const uint64_t block : {15, 12, 9, 17}) model.Give(block * kMiB);
  EXPECT_EQ(model.Take(10 * kMiB), 12 * kMiB) << "9 MiB are too few, 17 MiB another power of two";
  EXPECT_EQ(model.Take(10 * kMiB), 15 * kMiB);
  EXPECT_EQ(model.Take(10 * kMiB), 10 * kMiB) << "a new one";
}

TEST(HostAllocatorModel, KeepsNoLargeBlocks) {
  HostAllocatorModel model({kNever, 10 * kMiB});
  EXPECT_EQ(model.Take(11 * kMiB), 11 * kMiB) << "not rounded";
  model.Give(11 * kMiB);
  EXPECT_EQ(model.now(), 0u);
  EXPECT_EQ(model.Take(9 * kMiB), 16 * kMiB);
  model.Give(16 * kMiB);
  EXPECT_EQ(model.now(), 0u) << "rounded beyond what is kept";
}

TEST(HostAllocatorModel, ReadsItsSettings) {
  using Model = HostAllocatorModel;
  EXPECT_EQ(Model::LimitsOf("").rounded_up_to, kNever);
  EXPECT_EQ(Model::LimitsOf("").kept_up_to, kNever);
  // White space anywhere, the last of two keys, what follows a number, any token between the two.
  const Model::Limits limits = Model::LimitsOf(
      "pinned_max_round_threshold_mb:8,max_split_size_mb:20 ,\tpinned_max_round_ threshold_mb : 1x,"
      "pinned_max_cached_size_mb,4");
  EXPECT_EQ(limits.rounded_up_to, 1 * kMiB);
  EXPECT_EQ(limits.kept_up_to, 4 * kMiB);
  EXPECT_FALSE(limits.reserves);
  EXPECT_TRUE(Model::LimitsOf("pinned_reserve_segment_size_mb:64").reserves);
  EXPECT_FALSE(Model::LimitsOf("pinned_reserve_segment_size_mb:x").reserves);
  EXPECT_EQ(Model::LimitsOf("pinned_max_cached_size_mb").kept_up_to, kNever);
  EXPECT_EQ(Model::LimitsOf("pinned_max_cached_size_mb:17592186044416").kept_up_to, kNever);
}

// Follows two lines, of which the second reuses what the first freed once its event is done.
TEST(Pinned, WaitsForEvents) {
  Pinned pinned;
  pinned.Follow({kNever, kNever});
  pinned.Add(4 * kMiB, true);
  pinned.Requested(1, 3 * kMiB, 4 * kMiB, 0);
  int event = 0;
  uint64_t free = pinned.Freeing(1);
  pinned.Recorded(free, &event);
  pinned.Freed(free);
  pinned.Add(4 * kMiB, true);
  pinned.Requested(2, 3 * kMiB, 4 * kMiB, 1);
  EXPECT_EQ(pinned.models()[0].peak(), 8 * kMiB) << "the first block is still in use by the GPU";
  EXPECT_EQ(pinned.torch_peak(), 8 * kMiB);
  EXPECT_EQ(pinned.models()[1].peak(), 6 * kMiB);
  pinned.Done(&event);
  pinned.Requested(3, 4 * kMiB, 4 * kMiB, 1);
  EXPECT_EQ(pinned.models()[0].peak(), 8 * kMiB);
  EXPECT_EQ(pinned.models()[1].peak(), 10 * kMiB) << "3 MiB cannot serve 4 MiB";
  ASSERT_EQ(pinned.peak_lines().size(), 2u);
  EXPECT_EQ(pinned.peak_lines()[0].blocks, 0u) << "freed before the peak";
  EXPECT_EQ(pinned.peak_lines()[1].requested, 3 * kMiB);
  EXPECT_EQ(pinned.peak_lines()[1].held, 4 * kMiB);
  free = pinned.Freeing(7);
  EXPECT_EQ(free, 0u);
  pinned.Freed(free);
}

}  // namespace
}  // namespace memreplay::card
