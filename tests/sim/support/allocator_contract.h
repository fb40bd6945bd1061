// The contract of every Allocator, whatever its policy. This runs it on one:
//
//   struct MyAllocatorTraits {
//     static std::unique_ptr<Allocator> Make(Device& device);
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, AllocatorContractTest, MyAllocatorTraits);
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "sim/device/simulated_device.h"
#include "sim/model/allocator.h"
#include "sim/observe/overlap_checker.h"
#include "sim/observe/usage.h"
#include "tests/sim/support/statistics_identities.h"

namespace memreplay {

template <typename Traits>
class AllocatorContractTest : public testing::Test, protected Observer {
 protected:
  static constexpr Bytes kCapacity = MiB(400);

  AllocatorContractTest() : device_(kCapacity), allocator_(Traits::Make(device_)) {}

  void OnEvent(const Event& event) override {
    checker_.OnEvent(event);
    usage_.OnEvent(event);
    events_.push_back(event);
  }

  // Applies a request; events_ then has the events of it alone.
  void Do(EventKind kind, AllocationId id = kNoAllocation, uint64_t size = 0) {
    Event request;
    request.kind = kind;
    request.id = id;
    request.size = Bytes(size);
    Apply(request);
  }
  void Apply(const Event& request) {
    events_.clear();
    ASSERT_TRUE(allocator_->Apply(request, *this).ok());
    if (checker_.violation().has_value()) FAIL() << checker_.violation()->message;
    allocator_->CheckInvariants();
    const MemoryState segments = allocator_->Segments();
    ASSERT_EQ(BrokenStatisticsIdentity(segments, allocator_->statistics()), "");
    ASSERT_EQ(UsageOf(segments), usage_.current());
    for (size_t i = 1; i < segments.size(); ++i) {
      ASSERT_LE(segments[i - 1].address + segments[i - 1].total_size, segments[i].address);
    }
  }
  const Event* Find(EventKind kind) const {
    for (const Event& event : events_) {
      if (event.kind == kind) return &event;
    }
    return nullptr;
  }

  SimulatedDevice device_;
  std::unique_ptr<Allocator> allocator_;
  OverlapChecker checker_;
  UsageObserver usage_;
  std::vector<Event> events_;
};

TYPED_TEST_SUITE_P(AllocatorContractTest);

TYPED_TEST_P(AllocatorContractTest, AllocAndFreeTellWhereAndHowMuch) {
  this->Do(EventKind::kAlloc, 0, 1000);
  const Event* alloc = this->Find(EventKind::kAlloc);
  ASSERT_NE(alloc, nullptr);
  const Event granted = *alloc;
  EXPECT_EQ(granted.id, 0u);
  EXPECT_FALSE(granted.address.is_null());
  EXPECT_EQ(granted.address.value() % 512, 0u);
  EXPECT_EQ(granted.size, Bytes(1000));
  EXPECT_GE(granted.block_size, Bytes(1000));
  this->Do(EventKind::kFree, 0);
  ASSERT_GE(this->events_.size(), 2u);
  EXPECT_EQ(this->events_[0].kind, EventKind::kFree);
  EXPECT_EQ(this->events_[1].kind, EventKind::kFreeCompleted);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(this->events_[i].id, 0u);
    EXPECT_EQ(this->events_[i].address, granted.address);
    EXPECT_EQ(this->events_[i].size, granted.size);
    EXPECT_EQ(this->events_[i].block_size, granted.block_size);
  }
  EXPECT_EQ(this->usage_.current().active(), Bytes(0));
}

TYPED_TEST_P(AllocatorContractTest, EverythingGoesBackToTheDevice) {
  std::mt19937 random(1);
  for (AllocationId id = 0; id < 60; ++id) {
    this->Do(EventKind::kAlloc, id, 1 + random() % (id % 2 == 0 ? 5000 : 5000000));
  }
  for (AllocationId id = 0; id < 60; ++id) this->Do(EventKind::kFree, id * 7 % 60);
  this->Do(EventKind::kEmptyCache);
  EXPECT_TRUE(this->allocator_->Segments().empty());
  EXPECT_EQ(this->usage_.current(), Usage{});
  EXPECT_EQ(this->device_.FreeMemory(), this->kCapacity);
  int free_blocks = 0;
  this->allocator_->VisitFreeBlocks([&](const FreeBlock&) { ++free_blocks; });
  EXPECT_EQ(free_blocks, 0);
}

TYPED_TEST_P(AllocatorContractTest, OutOfMemoryIsAnEvent) {
  this->Do(EventKind::kAlloc, 0, MiB(100).value());
  this->Do(EventKind::kAlloc, 1, MiB(400).value());
  EXPECT_EQ(this->Find(EventKind::kAlloc), nullptr);
  const Event* oom = this->Find(EventKind::kOom);
  ASSERT_NE(oom, nullptr);
  EXPECT_EQ(oom->size, MiB(400));
  EXPECT_EQ(oom->address.value(), MiB(300).value());  // free bytes of the device
  EXPECT_EQ(this->allocator_->statistics().num_ooms, 1);
  this->Do(EventKind::kFree, 1);  // was never granted: skipped
  EXPECT_EQ(this->Find(EventKind::kFree), nullptr);
  this->Do(EventKind::kFree, 0);
  this->Do(EventKind::kAlloc, 2, MiB(400).value());
  EXPECT_NE(this->Find(EventKind::kAlloc), nullptr);
}

TYPED_TEST_P(AllocatorContractTest, InjectedFailuresReachTheDevice) {
  this->Do(EventKind::kFailNext, kNoAllocation, 100);
  this->Do(EventKind::kAlloc, 0, 4096);
  EXPECT_NE(this->Find(EventKind::kOom), nullptr);
  this->Do(EventKind::kFailNext, kNoAllocation, 0);
  this->Do(EventKind::kAlloc, 1, 4096);
  EXPECT_NE(this->Find(EventKind::kAlloc), nullptr);
}

TYPED_TEST_P(AllocatorContractTest, OutsideMemoryIsMissing) {
  this->Do(EventKind::kOutsideAlloc, kNoAllocation, MiB(300).value());
  this->Do(EventKind::kAlloc, 0, MiB(200).value());
  EXPECT_NE(this->Find(EventKind::kOom), nullptr);
  this->Do(EventKind::kOutsideFree, kNoAllocation, MiB(300).value());
  this->Do(EventKind::kAlloc, 1, MiB(200).value());
  EXPECT_NE(this->Find(EventKind::kAlloc), nullptr);
}

TYPED_TEST_P(AllocatorContractTest, NothingIsAskedForNothing) {
  this->Do(EventKind::kAlloc, 0, 0);
  EXPECT_TRUE(this->events_.empty());
  this->Do(EventKind::kFree, 0);
  EXPECT_TRUE(this->events_.empty());
}

TYPED_TEST_P(AllocatorContractTest, PeaksAreRestarted) {
  this->Do(EventKind::kAlloc, 0, 1 << 20);
  this->Do(EventKind::kFree, 0);
  EXPECT_EQ(this->allocator_->statistics().active.all.peak, 1);
  this->Do(EventKind::kResetPeak);
  EXPECT_EQ(this->allocator_->statistics().active.all.peak, 0);
  this->Do(EventKind::kAlloc, 1, 1 << 20);
  this->Do(EventKind::kFree, 1);
  EXPECT_EQ(this->allocator_->statistics().active.all.peak, 1);
  this->Do(EventKind::kResetPeak);
  EXPECT_EQ(this->allocator_->statistics().active.all.peak, 0);
}

TYPED_TEST_P(AllocatorContractTest, FractionLimitsWhatIsTaken) {
  EXPECT_FALSE(this->allocator_->SetMemoryFraction(-0.1).ok());
  EXPECT_FALSE(this->allocator_->SetMemoryFraction(1.5).ok());
  ASSERT_TRUE(this->allocator_->SetMemoryFraction(0.25).ok());  // 100 MiB
  this->Do(EventKind::kAlloc, 0, MiB(102).value());
  EXPECT_NE(this->Find(EventKind::kOom), nullptr);
  this->Do(EventKind::kAlloc, 1, MiB(100).value());
  EXPECT_NE(this->Find(EventKind::kAlloc), nullptr);
  ASSERT_TRUE(this->allocator_->SetMemoryFraction(1.0).ok());
  this->Do(EventKind::kAlloc, 2, MiB(102).value());
  EXPECT_NE(this->Find(EventKind::kAlloc), nullptr);
}

// Requests that PyTorch does not record are passed on, before their effects.
TYPED_TEST_P(AllocatorContractTest, UnrecordedRequestsArePassedOn) {
  this->Do(EventKind::kAlloc, 0, 2 << 20);
  for (const EventKind kind : {EventKind::kRecordStream, EventKind::kStreamDone,
                               EventKind::kEmptyCache, EventKind::kResetPeak}) {
    Event request;
    request.kind = kind;
    if (kind == EventKind::kRecordStream) request.id = 0;
    this->Apply(request);
    ASSERT_FALSE(this->events_.empty()) << EventKindName(kind);
    EXPECT_EQ(this->events_[0].kind, kind);
  }
}

TYPED_TEST_P(AllocatorContractTest, SameRequestsSameEvents) {
  std::vector<Event> runs[2];
  for (std::vector<Event>& run : runs) {
    SimulatedDevice device(this->kCapacity);
    const std::unique_ptr<Allocator> allocator = TypeParam::Make(device);
    struct Recorder final : Observer {
      void OnEvent(const Event& event) override { events->push_back(event); }
      std::vector<Event>* events = nullptr;
    } recorder;
    recorder.events = &run;
    std::mt19937_64 random(7);
    std::vector<AllocationId> live;
    AllocationId next = 0;
    for (int i = 0; i < 3000; ++i) {
      Event request;
      if (!live.empty() && random() % 2 == 0) {
        const size_t victim = random() % live.size();
        request.kind = EventKind::kFree;
        request.id = live[victim];
        live[victim] = live.back();
        live.pop_back();
      } else {
        request.kind = EventKind::kAlloc;
        request.id = next++;
        request.size = Bytes(1 + random() % (uint64_t{1} << (random() % 27)));
        live.push_back(request.id);
      }
      ASSERT_TRUE(allocator->Apply(request, recorder).ok());
    }
  }
  ASSERT_EQ(runs[0].size(), runs[1].size());
  for (size_t i = 0; i < runs[0].size(); ++i) {
    ASSERT_EQ(runs[0][i].kind, runs[1][i].kind);
    ASSERT_EQ(runs[0][i].address, runs[1][i].address);
    ASSERT_EQ(runs[0][i].block_size, runs[1][i].block_size);
  }
}

REGISTER_TYPED_TEST_SUITE_P(AllocatorContractTest, AllocAndFreeTellWhereAndHowMuch,
                            EverythingGoesBackToTheDevice, OutOfMemoryIsAnEvent,
                            InjectedFailuresReachTheDevice, OutsideMemoryIsMissing,
                            NothingIsAskedForNothing, PeaksAreRestarted, FractionLimitsWhatIsTaken,
                            UnrecordedRequestsArePassedOn, SameRequestsSameEvents);

}  // namespace memreplay
