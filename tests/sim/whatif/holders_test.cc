#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/direct_allocator.h"
#include "sim/whatif/look_back.h"

namespace memreplay {
namespace {

class Told {
 public:
  Told() { trace_.streams = {StreamHandle(0), StreamHandle(7)}; }
  void Send(EventKind kind, uint32_t stream, uint64_t mib, uint64_t block_mib = 0) {
    Event event;
    event.kind = kind;
    event.stream = stream;
    event.size = MiB(mib);
    event.block_size = MiB(block_mib == 0 ? mib : block_mib);
    if (!observer_) {
      observer_ = std::make_unique<HoldersObserver>(moments_, trace_.streams, trace_.pools);
      all_ = std::make_unique<ObserverList>(ObserverList{&usage_, &moments_, observer_.get()});
      SimulatedDevice device(GiB(1));
      all_->OnStart(start_, DirectAllocator(device));
    }
    all_->OnEvent(event);
  }
  std::vector<Holder> Holders() { return observer_->Holders(); }
  MemoryState start_;
  Trace trace_;

 private:
  UsageObserver usage_;
  MomentsObserver moments_ = MomentsObserver(usage_);
  std::unique_ptr<HoldersObserver> observer_;
  std::unique_ptr<ObserverList> all_;
};

TEST(HoldersObserver, WhoHoldsWhatAtThePeak) {
  Told run;
  run.Send(EventKind::kSegmentAlloc, 0, 20);      // 0
  run.Send(EventKind::kAlloc, 0, 12);             // 1: 8 cached
  run.Send(EventKind::kSegmentAlloc, 1, 10);      // 2
  run.Send(EventKind::kAlloc, 1, 9, 10);          // 3: the peak, 30 reserved
  run.Send(EventKind::kFreeCompleted, 0, 12);     // 4: 20 cached
  run.Send(EventKind::kFreeCompleted, 1, 9, 10);  // 5: 10 cached
  run.Send(EventKind::kSegmentFree, 0, 20);       // 6
  const std::vector<Holder> holders = run.Holders();
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].stream, 0u);
  EXPECT_EQ(holders[0].reserved, MiB(20));
  EXPECT_EQ(holders[0].active, MiB(12));
  EXPECT_EQ(holders[0].max_cached, MiB(20));
  EXPECT_EQ(holders[0].most_cached_event, 4u);
  EXPECT_EQ(holders[1].reserved, MiB(10));
  EXPECT_EQ(holders[1].active, MiB(10));
  EXPECT_EQ(holders[1].max_cached, MiB(10));
  EXPECT_EQ(holders[1].most_cached_event, 5u);
}

// Memory obtained for a request is not cached before the request is served.
TEST(HoldersObserver, ANewSegmentIsNotCached) {
  Told run;
  run.Send(EventKind::kSegmentAlloc, 0, 20);
  run.Send(EventKind::kAlloc, 0, 20);
  ASSERT_EQ(run.Holders().size(), 1u);
  EXPECT_EQ(run.Holders()[0].max_cached, Bytes());
}

TEST(HoldersObserver, BeginsWithTheStart) {
  Told run;
  SegmentInfo segment;
  segment.stream = StreamHandle(7);
  segment.total_size = MiB(30);
  segment.blocks.resize(2);
  segment.blocks[0].size = MiB(10);
  segment.blocks[0].state = BlockState::kAllocated;
  segment.blocks[1].size = MiB(20);
  segment.blocks[1].state = BlockState::kInactive;
  run.start_ = {segment};
  run.Send(EventKind::kSegmentFree, 0, 0);
  const std::vector<Holder> holders = run.Holders();
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].stream, 1u);
  EXPECT_EQ(holders[0].reserved, MiB(30));
  EXPECT_EQ(holders[0].active, MiB(10));
  EXPECT_EQ(holders[0].max_cached, MiB(20));
}

}  // namespace
}  // namespace memreplay
