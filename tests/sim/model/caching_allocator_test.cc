// Cases small enough to check by hand. PyTorch's own answers to D1 to D22 are among
// the golden cases of tests/conformance/golden.txt.
#include "sim/model/caching_allocator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/sim/support/allocator_harness.h"

namespace memreplay {
namespace {

std::string Text(const Stat& s) {
  return absl::StrCat("(", s.current(), ",", s.peak, ",", s.allocated, ",", s.freed(), ")");
}

HarnessOptions Capacity(uint64_t capacity) {
  HarnessOptions options;
  options.capacity = capacity;
  return options;
}

HarnessOptions Expandable(uint64_t capacity = 0) {
  HarnessOptions options;
  options.capacity = capacity;
  options.config.expandable_segments = true;
  return options;
}

HarnessOptions MaxSplit(uint64_t mb, uint64_t capacity = 0) {
  HarnessOptions options;
  options.capacity = capacity;
  options.config.max_split_size = MiB(mb);
  return options;
}

TEST(SpecCases, D1OneByte) {
  AllocatorHarness h;
  const AllocationId a = h.Alloc(1);
  EXPECT_EQ(h.stats().allocated_bytes.all.current(), 512);
  EXPECT_EQ(h.stats().requested_bytes.all.current(), 1);
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(1,1,1,0)");
  EXPECT_EQ(h.stats().inactive_split_bytes.all.current(), 2096640);
  h.Free(a);
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(0,1,1,1)");
  EXPECT_EQ(Text(h.stats().inactive_split_bytes.all), "(0,2096640,2096640,2096640)");
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Take(),
            "segment_alloc A+0 2M; alloc A+0 1; free_requested A+0 1; free_completed A+0 1; "
            "segment_free A+0 2M");
  EXPECT_EQ(Text(h.stats().segment.all), "(0,1,1,1)");
  EXPECT_EQ(Text(h.stats().reserved_bytes.all), "(0,2097152,2097152,2097152)");
  EXPECT_EQ(h.stats().num_device_alloc, 1);
  EXPECT_EQ(h.stats().num_device_free, 1);
  EXPECT_EQ(h.stats().num_sync_all_streams, 1);
}

TEST(SpecCases, D2SegmentAndBlockBySize) {
  struct Row {
    uint64_t request;
    uint64_t segment;
    int64_t block;
  };
  for (const Row& row : {Row{1, 2097152, 512}, Row{512, 2097152, 512}, Row{513, 2097152, 1024},
                         Row{1048576, 2097152, 1048576}, Row{1048577, 20971520, 1049088},
                         Row{10485248, 20971520, 10485248}, Row{10485249, 10485760, 10485760},
                         Row{10485761, 12582912, 10486272}}) {
    AllocatorHarness h;
    h.Alloc(row.request);
    EXPECT_EQ(h.stats().reserved_bytes.all.current(), static_cast<int64_t>(row.segment));
    EXPECT_EQ(h.stats().allocated_bytes.all.current(), row.block) << row.request;
  }
}

TEST(SpecCases, D3SmallSegmentFills) {
  AllocatorHarness h;
  for (int i = 0; i < 4095; ++i) h.Alloc(512);
  h.Take();
  h.Alloc(512);
  EXPECT_EQ(h.Take(), "alloc A+2096640 512");
  h.Alloc(1);
  EXPECT_EQ(h.Take(), "segment_alloc A+2M 2M; alloc A+2M 1");
  EXPECT_EQ(Text(h.stats().segment.all), "(2,2,2,0)");
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(1,1,2,1)");
  EXPECT_EQ(Text(h.stats().inactive_split_bytes.all), "(2096640,2096640,4193280,2096640)");
}

TEST(SpecCases, D4RemainderOfOneMiBStays) {
  AllocatorHarness a;
  a.Free(a.Alloc(2 * kMB));
  a.Take();
  a.Alloc(19922944);
  EXPECT_EQ(a.Take(), "alloc A+0 19M");
  EXPECT_EQ(a.stats().allocated_bytes.all.current(), 20971520);
  EXPECT_EQ(a.stats().requested_bytes.all.current(), 19922944);
  EXPECT_EQ(Text(a.stats().inactive_split.all), "(0,1,1,1)");

  AllocatorHarness b;
  b.Free(b.Alloc(2 * kMB));
  b.Alloc(19922432);
  EXPECT_EQ(b.Blocks(), "A+0 19922432 active 19922432; A+19922432 1049088 inactive 2M");
  EXPECT_EQ(Text(b.stats().inactive_split_bytes.all), "(1049088,18874368,19923456,18874368)");
}

TEST(SpecCases, D5TiesGoToTheLowestAddress) {
  AllocatorHarness h;
  const AllocationId a = h.Alloc(12 * kMB);
  h.Alloc(12 * kMB);
  const AllocationId c = h.Alloc(12 * kMB);
  const AllocationId d = h.Alloc(14 * kMB);
  h.Free(c);
  h.Free(a);
  h.Free(d);
  h.Take();
  h.Alloc(11 * kMB);
  EXPECT_EQ(h.Take(), "alloc A+0 11M");
  EXPECT_EQ(h.stats().requested_bytes.all.current(), static_cast<int64_t>(23 * kMB));
  EXPECT_EQ(h.stats().allocated_bytes.all.current(), static_cast<int64_t>(24 * kMB));
}

TEST(SpecCases, D6MergedBlocksKeepTheFreedObjectsRequest) {
  AllocatorHarness h;
  const AllocationId a = h.Alloc(1000);
  const AllocationId b = h.Alloc(2000);
  const AllocationId c = h.Alloc(3000);
  EXPECT_EQ(h.Take(), "segment_alloc A+0 2M; alloc A+0 1000; alloc A+1024 2000; alloc A+3072 3000");
  h.Free(b);
  h.Free(a);
  EXPECT_EQ(h.Blocks(),
            "A+0 3072 inactive 1000; A+3072 3072 active 3000; A+6144 2091008 inactive 0");
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(2,2,2,0)");
  EXPECT_EQ(Text(h.stats().inactive_split_bytes.all), "(2094080,2096128,2099200,5120)");
  h.Free(c);
  EXPECT_EQ(h.Blocks(), "A+0 2M inactive 3000");
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(0,2,2,2)");
  h.Alloc(100);
  EXPECT_EQ(h.Blocks(), "A+0 512 active 100; A+512 2096640 inactive 3000");
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(1,2,3,2)");
  EXPECT_EQ(Text(h.stats().inactive_split_bytes.all), "(2096640,2096640,4195840,2099200)");
}

TEST(SpecCases, D7FlushAndRetry) {
  AllocatorHarness h(Capacity(60 * kMB));
  const AllocationId a = h.Alloc(20 * kMB);
  const AllocationId b = h.Alloc(20 * kMB);
  h.Free(a);
  h.Free(b);
  h.Take();
  h.Alloc(50 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_free A+0 20M; segment_free A+20M 20M; segment_alloc A+0 50M; alloc A+0 50M");
  EXPECT_EQ(h.stats().num_alloc_retries, 1);
  EXPECT_EQ(h.stats().num_sync_all_streams, 1);
  h.Alloc(20 * kMB);
  EXPECT_EQ(h.Take(), "oom 10M 20M");
  EXPECT_EQ(h.stats().num_alloc_retries, 2);
  EXPECT_EQ(h.stats().num_ooms, 1);
  EXPECT_EQ(h.stats().num_sync_all_streams, 2);
  EXPECT_EQ(h.stats().num_device_alloc, 3);
  EXPECT_EQ(h.stats().num_device_free, 2);
}

TEST(SpecCases, D8OversizeBlocks) {
  AllocatorHarness h(MaxSplit(40));
  h.Free(h.Alloc(60 * kMB));
  h.Take();
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(), "segment_alloc A+60M 30M; alloc A+60M 30M");
  EXPECT_EQ(Text(h.stats().oversize_segments), "(1,1,1,0)");
  EXPECT_EQ(Text(h.stats().oversize_allocations), "(0,1,1,1)");
  const AllocationId b = h.Alloc(41 * kMB);
  EXPECT_EQ(h.Take(), "alloc A+0 41M");
  EXPECT_EQ(h.stats().allocated_bytes.all.current(), static_cast<int64_t>(90 * kMB));
  EXPECT_EQ(h.stats().requested_bytes.all.current(), static_cast<int64_t>(71 * kMB));
  EXPECT_EQ(Text(h.stats().oversize_allocations), "(1,1,2,1)");
  h.Free(b);
  h.Take();
  h.Alloc(40 * kMB);
  EXPECT_EQ(h.Take(), "segment_alloc A+90M 40M; alloc A+90M 40M");
  EXPECT_EQ(Text(h.stats().oversize_segments), "(2,2,2,0)");
}

TEST(SpecCases, D8ReleasesTheLargestFirst) {
  AllocatorHarness h(MaxSplit(40, 200 * kMB));
  std::vector<AllocationId> ids = {h.Alloc(50 * kMB), h.Alloc(60 * kMB), h.Alloc(70 * kMB)};
  for (AllocationId id : ids) h.Free(id);
  h.Take();
  h.Alloc(100 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_free A+110M 70M; segment_free A+50M 60M; segment_alloc A+50M 100M; "
            "alloc A+50M 100M");
  EXPECT_EQ(h.stats().num_alloc_retries, 0);
  EXPECT_EQ(h.stats().num_sync_all_streams, 0);
}

TEST(SpecCases, D8ReleasesTheSmallestSufficient) {
  AllocatorHarness h(MaxSplit(40, 200 * kMB));
  std::vector<AllocationId> ids = {h.Alloc(50 * kMB), h.Alloc(70 * kMB), h.Alloc(60 * kMB)};
  for (AllocationId id : ids) h.Free(id);
  h.Take();
  h.Alloc(39 * kMB);
  EXPECT_EQ(h.Take(), "segment_free A+0 50M; segment_alloc A+0 40M; alloc A+0 39M");
  EXPECT_EQ(h.stats().allocated_bytes.all.current(), static_cast<int64_t>(40 * kMB));
  EXPECT_EQ(h.stats().oversize_allocations.current(), 1);
}

TEST(SpecCases, D9GarbageCollectionFreesTheOld) {
  HarnessOptions options;
  options.capacity = 1000 * kMB;
  options.config.garbage_collection_threshold = 0.5;
  AllocatorHarness h(options);
  ASSERT_TRUE(h.allocator().SetMemoryFraction(0.1).ok());
  std::vector<AllocationId> ids = {h.Alloc(12 * kMB), h.Alloc(14 * kMB), h.Alloc(16 * kMB),
                                   h.Alloc(18 * kMB)};
  for (AllocationId id : ids) h.Free(id);
  h.Free(h.Alloc(18 * kMB));
  h.Take();
  h.Alloc(24 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_free A+0 12M; segment_free A+12M 14M; segment_free A+26M 16M; "
            "segment_alloc A+0 24M; alloc A+0 24M");
  EXPECT_EQ(h.stats().num_alloc_retries, 0);
}

TEST(SpecCases, D10ExpandableMapsAndUnmapsPages) {
  AllocatorHarness h(Expandable());
  const AllocationId a = h.Alloc(1);
  const AllocationId b = h.Alloc(3 * kMB);
  const AllocationId c = h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_map V0+0 2M; alloc V0+0 1; segment_map V1+0 20M; alloc V1+0 3M; "
            "segment_map V1+20M 20M; alloc V1+3M 30M");
  h.Free(b);
  h.Free(c);
  EXPECT_EQ(h.Blocks(), "V0+0 512 active 1; V0+512 2096640 inactive 0 | V1+0 40M inactive 30M");
  h.Take();
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Take(), "segment_unmap V1+0 40M");
  h.Free(a);
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Take(), "free_requested V0+0 1; free_completed V0+0 1; segment_unmap V0+0 2M");
  EXPECT_EQ(h.stats().reserved_bytes.all.peak, 44040192);
  EXPECT_EQ(Text(h.stats().segment.all), "(0,0,0,0)");
  EXPECT_EQ(Text(h.stats().inactive_split.all), "(0,0,0,0)");
  EXPECT_EQ(h.stats().num_device_alloc, 3);
  EXPECT_EQ(h.stats().num_device_free, 2);
}

TEST(Expandable, ARequestLargerThanAReservationRunsOutOnEveryDevice) {
  for (const char* const torch : {"2.1", "2.3", "2.11", "2.14", "2.15"}) {
    SCOPED_TRACE(torch);
    HarnessOptions options = Expandable(0);  // a device that never runs out
    options.torch = torch;
    AllocatorHarness h(options);
    h.Alloc(uint64_t{2} << 40);
    EXPECT_TRUE(h.Take().starts_with("oom "));
    EXPECT_EQ(h.stats().num_ooms, 1);
    EXPECT_EQ(h.stats().reserved_bytes.all.peak, 0);
    h.Alloc(kMB * 30);
    EXPECT_EQ(h.stats().reserved_bytes.all.current(), 40 * kMB);
  }
}

TEST(SpecCases, D11UnmapsOnlyWholePages) {
  AllocatorHarness h(Expandable());
  h.Alloc(30 * kMB);
  const AllocationId b = h.Alloc(30 * kMB);
  h.Alloc(30 * kMB);
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_map V0+0 40M; alloc V0+0 30M; segment_map V0+40M 20M; alloc V0+30M 30M; "
            "segment_map V0+60M 40M; alloc V0+60M 30M; segment_map V0+100M 20M; alloc V0+90M 30M");
  h.Free(b);
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Blocks(),
            "V0+0 30M active 30M; V0+30M 10M inactive 0 | V0+60M 30M active 30M; "
            "V0+90M 30M active 30M");
  h.Take();
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(), "segment_map V0+40M 20M; alloc V0+30M 30M");
}

TEST(SpecCases, D12FlushOfExpandable) {
  AllocatorHarness h(Expandable(100 * kMB));
  const AllocationId a = h.Alloc(50 * kMB);
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_map V0+0 60M; alloc V0+0 50M; segment_map V0+60M 20M; alloc V0+50M 30M");
  h.Free(a);
  h.Take();
  h.Alloc(70 * kMB);
  EXPECT_EQ(h.Take(), "segment_unmap V0+0 40M; oom 60M 70M");
  EXPECT_EQ(h.Blocks(), "V0+40M 10M inactive 0; V0+50M 30M active 30M");
  EXPECT_EQ(h.stats().num_alloc_retries, 1);
}

TEST(SpecCases, D13RecordStreamDelaysTheFree) {
  HarnessOptions options;
  options.streams = {0, 1, 7};
  options.explicit_completion = true;
  AllocatorHarness h(options);
  const AllocationId a = h.Alloc(kMB, 1);
  ASSERT_TRUE(h.Do(EventKind::kRecordStream, a, 2).ok());
  h.Free(a);
  EXPECT_EQ(h.Blocks(), "A+0 1M pending 1M; A+1M 1M inactive 0");
  EXPECT_EQ(h.stats().allocated_bytes.all.current(), 0);
  EXPECT_EQ(h.stats().active_bytes.all.current(), 1048576);
  h.Alloc(kMB, 1);
  ASSERT_TRUE(h.Do(EventKind::kStreamDone, kNoAllocation, 2).ok());
  h.Alloc(512 * 1024, 1);
  EXPECT_EQ(h.Take(),
            "segment_alloc A+0 2M; alloc A+0 1M; free_requested A+0 1M; alloc A+1M 1M; "
            "free_completed A+0 1M; alloc A+0 524288");
  EXPECT_EQ(h.Blocks(), "A+0 524288 active 524288; A+524288 524288 inactive 1M; A+1M 1M active 1M");
}

TEST(SpecCases, D14StreamsDoNotShare) {
  HarnessOptions options;
  options.streams = {16, 32};
  AllocatorHarness h(options);
  h.Free(h.Alloc(1, 0));
  h.Take();
  h.Alloc(1, 1);
  EXPECT_EQ(h.Take(), "segment_alloc A+2M 2M; alloc A+2M 1");
}

TEST(SpecCases, D16Limit) {
  AllocatorHarness h(Capacity(500 * kMB));
  ASSERT_TRUE(h.allocator().SetMemoryFraction(0.1).ok());
  const AllocationId a = h.Alloc(30 * kMB);
  h.Take();
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(), "oom 470M 30M");
  h.Free(a);
  h.Take();
  h.Alloc(40 * kMB);
  EXPECT_EQ(h.Take(), "segment_free A+0 30M; segment_alloc A+0 40M; alloc A+0 40M");
  EXPECT_EQ(h.stats().num_alloc_retries, 2);
  EXPECT_EQ(h.stats().num_ooms, 1);
  EXPECT_EQ(h.stats().num_sync_all_streams, 2);
}

TEST(SpecCases, D17LimitCountsTheSegmentSize) {
  AllocatorHarness h(Expandable(300 * kMB));
  ASSERT_TRUE(h.allocator().SetMemoryFraction(0.1).ok());
  h.Alloc(15 * kMB);
  h.Alloc(5 * kMB);
  h.Alloc(kMB);
  EXPECT_EQ(h.Take(),
            "segment_map V0+0 20M; alloc V0+0 15M; alloc V0+15M 5M; segment_map V1+0 2M; "
            "alloc V1+0 1M");
  h.Alloc(3 * kMB);
  EXPECT_EQ(h.Take(), "oom 278M 3M");
}

TEST(SpecCases, D18ExpandableSwitchedAtRunTime) {
  AllocatorHarness h(Expandable());
  h.Free(h.Alloc(30 * kMB));
  ASSERT_TRUE(h.allocator().ApplySettings("expandable_segments:False").ok());
  const AllocationId b = h.Alloc(30 * kMB);
  h.Free(b);
  ASSERT_TRUE(h.allocator().ApplySettings("expandable_segments:True").ok());
  h.Take();
  h.Alloc(25 * kMB);
  EXPECT_EQ(h.Take(), "alloc A+0 25M");
  EXPECT_EQ(h.stats().inactive_split.all.current(), 1);
}

TEST(SpecCases, D19MapsSeveralHoles) {
  AllocatorHarness h(Expandable(100 * kMB));
  std::vector<AllocationId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(h.Alloc(20 * kMB));
  h.Free(ids[0]);
  ASSERT_TRUE(h.EmptyCache().ok());
  h.Free(ids[2]);
  ASSERT_TRUE(h.EmptyCache().ok());
  h.Free(ids[1]);
  h.device().TakeOutside(MiB(40));
  h.Take();
  h.Alloc(60 * kMB);
  EXPECT_EQ(h.Take(), "segment_map V0+0 20M; segment_unmap V0+0 40M; oom 40M 60M");
}

TEST(SpecCases, D20HolesBeforeTheTail) {
  AllocatorHarness h(Expandable());
  h.Alloc(4 * kMB);
  const AllocationId b = h.Alloc(10 * kMB);
  h.Alloc(4 * kMB);
  h.Free(b);
  h.Take();
  h.Alloc(1049088);
  EXPECT_EQ(h.Take(), "alloc V0+4M 1049088");
  EXPECT_EQ(h.Blocks(),
            "V0+0 4M active 4M; V0+4M 1049088 active 1049088; V0+5243392 9436672 inactive 10M; "
            "V0+14M 4M active 4M; V0+18M 2M inactive 0");
}

TEST(SpecCases, D21PrivatePool) {
  HarnessOptions options;
  options.pools = {PoolId{}, PoolId{0, 1}};
  AllocatorHarness h(options);
  ASSERT_TRUE(h.Do(EventKind::kPoolBegin, kNoAllocation, 0, 1).ok());
  const AllocationId a = h.Alloc(4 * kMB);
  ASSERT_TRUE(h.Do(EventKind::kPoolEnd, kNoAllocation, 0, 1).ok());
  h.Alloc(4 * kMB);
  EXPECT_EQ(h.Take(),
            "segment_alloc A+0 20M; alloc A+0 4M; segment_alloc A+20M 20M; alloc A+20M 4M");
  h.Free(a);
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Take(), "free_requested A+0 4M; free_completed A+0 4M");
  ASSERT_TRUE(h.Do(EventKind::kPoolRelease, kNoAllocation, 0, 1).ok());
  ASSERT_TRUE(h.EmptyCache().ok());
  EXPECT_EQ(h.Take(), "segment_free A+0 20M");
  EXPECT_EQ(h.stats().num_sync_all_streams, 2);
}

TEST(SpecCases, D22UseOnOom) {
  HarnessOptions options;
  options.capacity = 80 * kMB;
  options.pools = {PoolId{}, PoolId{0, 1}, PoolId{0, 2}};
  AllocatorHarness h(options);
  ASSERT_TRUE(h.Do(EventKind::kPoolCreate, kNoAllocation, 0, 2, kPoolUseOnOom).ok());
  const auto in_pool = [&h](uint16_t pool, uint64_t size) {
    EXPECT_TRUE(h.Do(EventKind::kPoolBegin, kNoAllocation, 0, pool).ok());
    const AllocationId id = h.Alloc(size);
    EXPECT_TRUE(h.Do(EventKind::kPoolEnd, kNoAllocation, 0, pool).ok());
    return id;
  };
  const AllocationId x = in_pool(1, 40 * kMB);
  const AllocationId u = in_pool(2, 40 * kMB);
  h.Take();
  h.Alloc(40 * kMB);
  EXPECT_EQ(h.Take(), "oom 0 40M");
  h.Free(x);
  h.Free(u);
  h.Take();
  const AllocationId c = h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(), "alloc A+40M 30M");
  h.Alloc(30 * kMB);
  EXPECT_EQ(h.Take(), "oom 0 30M");
  h.Free(c);
  h.Take();
  in_pool(2, 20 * kMB);
  EXPECT_EQ(h.Take(), "alloc A+40M 20M");
  EXPECT_EQ(h.stats().num_alloc_retries, 2);
}

}  // namespace
}  // namespace memreplay
