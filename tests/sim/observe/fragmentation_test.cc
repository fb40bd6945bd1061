#include "sim/observe/fragmentation.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

// An allocator that has free blocks and nothing else that matters.
class ListedBlocks final : public Allocator {
 public:
  std::vector<FreeBlock> blocks;

  absl::Status Apply(const Event&, Observer&) override { return absl::OkStatus(); }
  absl::Status ApplySettings(std::string_view) override { return absl::OkStatus(); }
  absl::Status SetMemoryFraction(double) override { return absl::OkStatus(); }
  const MemoryStats& statistics() const override { return stats_; }
  MemoryState Segments() const override { return {}; }
  void VisitFreeBlocks(absl::FunctionRef<void(const FreeBlock&)> visit) const override {
    for (const FreeBlock& block : blocks) visit(block);
  }
  void CheckInvariants() const override {}
  Bytes BlockSizeFor(Bytes size) const override {
    return RoundUp(std::max(size, smallest_block), smallest_block);
  }
  Bytes smallest_block = Bytes(512);

 private:
  MemoryStats stats_;
};

class FragmentationTest : public testing::Test {
 protected:
  void Feed(FragmentationObserver* observer, EventKind kind, uint64_t size, uint64_t block = 0,
            uint32_t stream = 0, uint16_t pool = 0) {
    Event event;
    event.kind = kind;
    event.size = Bytes(size);
    event.block_size = Bytes(block);
    event.stream = stream;
    event.pool = pool;
    usage_.OnEvent(event);
    moments_->OnEvent(event);
    observer->OnEvent(event);
  }
  void Start(FragmentationObserver* observer) {
    moments_->OnStart({}, allocator_);
    observer->OnStart({}, allocator_);
  }
  // This is another run.
  void Restart() {
    usage_ = UsageObserver();
    moments_.emplace(usage_);
  }

  ListedBlocks allocator_;
  UsageObserver usage_;
  std::optional<MomentsObserver> moments_ = MomentsObserver(usage_);
};

TEST_F(FragmentationTest, MeasuresWasteAtTheGivenEvent) {
  allocator_.blocks = {
      {.address = Address(1), .size = Bytes(512), .is_split = true},
      {.address = Address(2), .size = Bytes(4096), .is_split = true},
      {.address = Address(3), .size = MiB(2)},
      {.address = Address(4), .size = MiB(8), .is_large = true, .is_split = true},
      {.address = Address(5),
       .size = MiB(30),
       .is_large = true,
       .is_split = true,
       .is_expandable = true},
      {.address = Address(6), .size = MiB(20), .stream = 1, .is_large = true},
  };
  FragmentationObserver observer(usage_, *moments_, {.at_event = 3});
  Start(&observer);
  Feed(&observer, EventKind::kSegmentAlloc, MiB(100).value());           // 0
  Feed(&observer, EventKind::kAlloc, 1000, 1024);                        // 1
  Feed(&observer, EventKind::kAlloc, MiB(10).value(), MiB(11).value());  // 2
  EXPECT_FALSE(observer.sample().has_value());
  Feed(&observer, EventKind::kSegmentMap, MiB(20).value());  // 3
  EXPECT_FALSE(observer.sample().has_value());               // the request is not through yet
  Feed(&observer, EventKind::kAlloc, MiB(20).value(), MiB(20).value());  // 4
  Feed(&observer, EventKind::kAlloc, 1, 512);                            // too late for the sample
  const Fragmentation& f = *observer.sample();
  EXPECT_EQ(f.at_event, 4u);
  EXPECT_EQ(f.internal, Bytes(24) + MiB(1));
  EXPECT_EQ(f.unused, MiB(120) - MiB(31) - Bytes(1024));
  EXPECT_EQ(f.inactive_split, Bytes(4608) + MiB(8));
  EXPECT_EQ(f.free, Bytes(4608) + MiB(60));
  ASSERT_EQ(f.free_sets.size(), 3u);
  EXPECT_EQ(f.free_sets[0].largest, MiB(2));
  EXPECT_EQ(f.free_sets[0].blocks, 3u);
  EXPECT_EQ(f.free_sets[1].largest, MiB(30));
  EXPECT_EQ(f.free_sets[1].free, MiB(38));
  EXPECT_TRUE(f.free_sets[1].is_large);
  EXPECT_EQ(f.free_sets[2].stream, 1u);
  // 512 < 1024; 8 MiB < 10 MiB; nothing large was requested on stream 1.
  EXPECT_EQ(f.unservable, Bytes(512) + MiB(28));
  EXPECT_EQ(f.requests, 3u);
  EXPECT_NEAR(f.unservable_share(), (512 + 28.0 * 1048576) / (4608 + 60.0 * 1048576), 1e-12);
}

TEST_F(FragmentationTest, OnlyTheLastRequestsCount) {
  allocator_.blocks = {{.address = Address(1), .size = Bytes(2048)}};
  for (const auto& [last, unservable] : {std::pair(1, 2048), {2, 2048}, {3, 0}}) {
    Restart();
    FragmentationObserver observer(usage_, *moments_,
                                   {.at_event = 3, .last_requests = static_cast<size_t>(last)});
    Start(&observer);
    Feed(&observer, EventKind::kAlloc, 4096, 4096);
    Feed(&observer, EventKind::kAlloc, 2048, 2048);
    Feed(&observer, EventKind::kAlloc, 4096, 4096);
    Feed(&observer, EventKind::kOom, 4096);  // a request too
    EXPECT_EQ(observer.sample()->unservable, Bytes(unservable)) << last;
  }
}

TEST_F(FragmentationTest, RoundsAsTold) {
  allocator_.blocks = {{.address = Address(1), .size = Bytes(3072)}};
  allocator_.smallest_block = Bytes(4096);
  FragmentationObserver observer(usage_, *moments_, {.at_event = 0});
  Start(&observer);
  Feed(&observer, EventKind::kAlloc, 2500, 4096);
  EXPECT_EQ(observer.sample()->unservable, Bytes(3072));
}

TEST_F(FragmentationTest, ThePeakIsFoundInOneRun) {
  allocator_.blocks = {{.address = Address(1), .size = MiB(1)}};
  FragmentationObserver observer(usage_, *moments_, {});
  Start(&observer);
  EXPECT_EQ(observer.sample()->at_event, UsageObserver::kAtStart);
  Feed(&observer, EventKind::kSegmentAlloc, MiB(20).value());  // 0
  Feed(&observer, EventKind::kAlloc, MiB(2).value());          // 1
  Feed(&observer, EventKind::kSegmentFree, MiB(20).value());   // 2
  Feed(&observer, EventKind::kSegmentAlloc, MiB(30).value());  // 3
  Feed(&observer, EventKind::kAlloc, MiB(3).value());          // 4: the peak
  Feed(&observer, EventKind::kSegmentFree, MiB(30).value());   // 5
  Feed(&observer, EventKind::kSegmentAlloc, MiB(25).value());  // 6
  Feed(&observer, EventKind::kAlloc, MiB(1).value());          // 7
  observer.OnEnd();
  EXPECT_EQ(observer.sample()->at_event, 4u);
  EXPECT_EQ(observer.sample()->usage.reserved(), MiB(30));
}

// The first moment at the reserved peak is often one at which nearly everything is still
// cached: what is unused then is no waste.
TEST_F(FragmentationTest, OfTheMomentsAtTheReservedPeakTheFullestIsMeant) {
  for (const uint64_t skipped : {0, 1, 2, 3}) {
    Restart();
    FragmentationOptions options;
    options.skipped_allocations = skipped;
    FragmentationObserver observer(usage_, *moments_, options);
    Start(&observer);
    Feed(&observer, EventKind::kSegmentAlloc, MiB(20).value());  // 0
    Feed(&observer, EventKind::kAlloc, MiB(2).value());          // 1
    Feed(&observer, EventKind::kAlloc, MiB(10).value());         // 2: the fullest
    Feed(&observer, EventKind::kFree, MiB(10).value());          // 3
    Feed(&observer, EventKind::kFreeCompleted, MiB(10).value());
    Feed(&observer, EventKind::kAlloc, MiB(10).value());       // 5: as full, but later
    Feed(&observer, EventKind::kSegmentFree, MiB(4).value());  // 6
    Feed(&observer, EventKind::kAlloc, MiB(3).value());        // 7: fuller, but below the peak
    observer.OnEnd();
    EXPECT_EQ(moments_->moments().at_peak.event, 2u);
    EXPECT_EQ(observer.gave_up(), skipped > 1);
    ASSERT_EQ(observer.sample().has_value(), skipped <= 1);
    if (!observer.gave_up()) {
      EXPECT_EQ(observer.sample()->at_event, 2u);
      EXPECT_EQ(observer.sample()->unused, MiB(8));
    }
  }
}

// Where every request reserves more among ever more cached blocks, looking at each
// would be quadratic.
TEST_F(FragmentationTest, GivesUpWhereAnotherRunIsCheaper) {
  allocator_.blocks.resize(1000);
  for (const bool may_give_up : {true, false}) {
    Restart();
    FragmentationOptions options;
    options.may_give_up = may_give_up;
    FragmentationObserver observer(usage_, *moments_, options);
    Start(&observer);
    for (int i = 0; i < 1000; ++i) {
      Feed(&observer, EventKind::kSegmentAlloc, MiB(20).value());
      Feed(&observer, EventKind::kAlloc, MiB(20).value());
    }
    observer.OnEnd();
    EXPECT_EQ(observer.gave_up(), may_give_up);
    EXPECT_EQ(observer.sample().has_value(), !may_give_up);
  }
}

TEST_F(FragmentationTest, LooksAgainOnceTheRunHasCostMore) {
  allocator_.blocks.resize(1000);
  FragmentationObserver observer(usage_, *moments_, {});
  Start(&observer);
  for (int i = 0; i < 120; ++i) {
    Feed(&observer, EventKind::kSegmentAlloc, MiB(20).value());
    Feed(&observer, EventKind::kAlloc, MiB(20).value());
  }
  EXPECT_TRUE(observer.gave_up());
  for (int i = 0; i < 100000; ++i) {
    Feed(&observer, EventKind::kAlloc, 512, 512);
    Feed(&observer, EventKind::kFree, 512, 512);
    Feed(&observer, EventKind::kFreeCompleted, 512, 512);
  }
  EXPECT_FALSE(observer.sample().has_value());
  Feed(&observer, EventKind::kSegmentAlloc, MiB(20).value());
  Feed(&observer, EventKind::kAlloc, MiB(20).value());
  observer.OnEnd();
  EXPECT_FALSE(observer.gave_up());
  ASSERT_TRUE(observer.sample().has_value());
  EXPECT_EQ(observer.sample()->at_event, 300241u);
}

TEST_F(FragmentationTest, SamplesAtTheEndIfItsMomentNeverCame) {
  FragmentationObserver observer(usage_, *moments_, {.at_event = 100});
  Start(&observer);
  Feed(&observer, EventKind::kSegmentAlloc, 4096);
  Feed(&observer, EventKind::kAlloc, 100, 512);
  Feed(&observer, EventKind::kFree, 100, 512);
  Feed(&observer, EventKind::kFreeCompleted, 100, 512);
  observer.OnEnd();
  ASSERT_TRUE(observer.sample().has_value());
  EXPECT_EQ(observer.sample()->at_event, 3u);
  EXPECT_EQ(observer.sample()->unused, Bytes(4096));
}

}  // namespace
}  // namespace memreplay
