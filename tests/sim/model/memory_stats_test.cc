#include "sim/model/memory_stats.h"

#include <algorithm>
#include <map>
#include <string>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

std::map<std::string, int64_t> Flat(const MemoryStats& stats, std::string_view release) {
  const auto flat = FlatStatistics(stats, **FindTorchProfile(release));
  EXPECT_TRUE(std::is_sorted(flat.begin(), flat.end()));
  return {flat.begin(), flat.end()};
}

TEST(MemoryStatsTest, FlatNamesArePyTorchs) {
  MemoryStats stats;
  stats.allocated_bytes.Increase(/*is_large=*/true, 700);
  stats.allocated_bytes.Increase(/*is_large=*/false, 30);
  stats.allocated_bytes.Decrease(/*is_large=*/true, 500);
  stats.oversize_segments.Increase(2);
  stats.num_device_alloc = 3;
  stats.num_ooms = 4;
  auto flat = Flat(stats, "2.11");
  EXPECT_EQ(flat.at("allocated_bytes.all.current"), 230);
  EXPECT_EQ(flat.at("allocated_bytes.all.peak"), 730);
  EXPECT_EQ(flat.at("allocated_bytes.all.allocated"), 730);
  EXPECT_EQ(flat.at("allocated_bytes.all.freed"), 500);
  EXPECT_EQ(flat.at("allocated_bytes.large_pool.current"), 200);
  EXPECT_EQ(flat.at("allocated_bytes.large_pool.peak"), 700);
  EXPECT_EQ(flat.at("allocated_bytes.small_pool.current"), 30);
  EXPECT_EQ(flat.at("oversize_segments.peak"), 2);
  EXPECT_EQ(flat.at("num_device_alloc"), 3);
  EXPECT_EQ(flat.at("num_ooms"), 4);
  EXPECT_EQ(flat.at("max_split_size"), -1);
  EXPECT_EQ(flat.size(), 9u * 12 + 2 * 4 + 6);
  EXPECT_EQ(Flat(stats, "2.1").count("num_device_alloc"), 0u);  // came later
}

TEST(MemoryStatsTest, ResetPeakKeepsTheRest) {
  MemoryStats stats;
  stats.active.Increase(true, 5);
  stats.active.Decrease(true, 3);
  stats.oversize_allocations.Increase(1);
  stats.oversize_allocations.Decrease(1);
  stats.ResetPeak();
  EXPECT_EQ(stats.active.all.peak, 2);
  EXPECT_EQ(stats.active.large_pool.peak, 2);
  EXPECT_EQ(stats.active.all.allocated, 5);
  EXPECT_EQ(stats.active.all.freed(), 3);
  EXPECT_EQ(stats.oversize_allocations.peak, 0);
}

}  // namespace
}  // namespace memreplay
