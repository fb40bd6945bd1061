#include "sim/observe/overlap_checker.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sim/device/simulated_device.h"
#include "sim/model/direct_allocator.h"

namespace memreplay {
namespace {

struct Given {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t block = 0;
  AllocationId id = kNoAllocation;
  uint32_t stream = 0;
  uint16_t pool = 0;
};

Event Make(EventKind kind, const Given& given) {
  Event event;
  event.kind = kind;
  event.address = Address(given.address);
  event.size = Bytes(given.size);
  event.block_size = Bytes(given.block);
  event.id = given.id;
  event.stream = given.stream;
  event.pool = given.pool;
  return event;
}
Event SegmentAlloc(Given g) { return Make(EventKind::kSegmentAlloc, g); }
Event SegmentFree(Given g) { return Make(EventKind::kSegmentFree, g); }
Event Map(Given g) { return Make(EventKind::kSegmentMap, g); }
Event Unmap(Given g) { return Make(EventKind::kSegmentUnmap, g); }
Event Alloc(Given g) { return Make(EventKind::kAlloc, g); }
Event Free(Given g) { return Make(EventKind::kFree, g); }
Event Completed(Given g) { return Make(EventKind::kFreeCompleted, g); }
Event Snapshot(uint64_t size) { return Make(EventKind::kSnapshot, {.size = size}); }

// "" if all events are fine, else the violation, which must be at the last one.
std::string Check(const std::vector<Event>& events, const MemoryState& start = {}) {
  OverlapChecker checker;
  SimulatedDevice device(GiB(1));
  checker.OnStart(start, DirectAllocator(device));
  for (const Event& event : events) checker.OnEvent(event);
  if (!checker.violation().has_value()) return "";
  EXPECT_EQ(checker.violation()->event, events.size() - 1);
  return checker.violation()->message;
}

testing::AssertionResult Objects(const std::vector<Event>& events, const std::string& part) {
  const std::string message = Check(events);
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "got: '" << message << "'";
}

constexpr uint64_t kA = 0x1000000;

TEST(OverlapCheckerTest, AcceptsAnOrdinaryLife) {
  EXPECT_EQ(Check({SegmentAlloc({.address = kA, .size = 4096}),
                   Alloc({.address = kA, .size = 1000, .block = 1024, .id = 0}),
                   Alloc({.address = kA + 1024, .size = 3000, .block = 3072, .id = 1}),
                   Snapshot(4096), Free({.address = kA, .size = 1000, .block = 1024, .id = 0}),
                   Completed({.address = kA, .size = 1000, .block = 1024, .id = 0}),
                   Alloc({.address = kA, .size = 512, .block = 512, .id = 2}),
                   Free({.address = kA, .size = 512, .block = 512, .id = 2}),
                   Completed({.address = kA, .size = 512, .id = 2}),
                   Free({.address = kA + 1024, .size = 3000, .id = 1}), Snapshot(3072),
                   Completed({.address = kA + 1024, .size = 3000, .id = 1}),
                   SegmentFree({.address = kA, .size = 4096}), Snapshot(0)}),
            "");
}

TEST(OverlapCheckerTest, ObjectsToImpossibleBlocks) {
  const Event segment = SegmentAlloc({.address = kA, .size = 4096});
  const Event block = Alloc({.address = kA + 512, .size = 1024, .block = 1024, .id = 0});
  EXPECT_TRUE(Objects({block}, "not within a single segment"));
  EXPECT_TRUE(Objects({segment, Alloc({.address = kA + 3584, .size = 513, .block = 1024})},
                      "not within a single segment"));
  EXPECT_TRUE(Objects({segment, SegmentAlloc({.address = kA + 4096, .size = 4096}),
                       Alloc({.address = kA, .size = 8192, .block = 8192})},
                      "not within a single segment"));
  EXPECT_TRUE(
      Objects({segment, block, Alloc({.address = kA, .size = 600, .block = 1024})}, "overlaps"));
  EXPECT_TRUE(Objects({segment, block, Alloc({.address = kA + 1024, .size = 1, .block = 512})},
                      "overlaps"));
  EXPECT_TRUE(
      Objects({segment, block, Alloc({.address = kA + 2048, .size = 1, .id = 0})}, "id 0 is live"));
  EXPECT_TRUE(Objects({segment, Alloc({.address = kA, .size = 513, .block = 512})}, "only 512"));
  EXPECT_TRUE(Objects({segment, Alloc({.address = kA, .size = 1, .stream = 1})}, "stream 1"));
  EXPECT_TRUE(Objects({segment, Alloc({.address = kA, .size = 1, .pool = 2})}, "pool 2"));
  EXPECT_TRUE(Objects({segment, block, Snapshot(1)}, "there are 1024"));
}

TEST(OverlapCheckerTest, ObjectsToImpossibleFrees) {
  const Event segment = SegmentAlloc({.address = kA, .size = 4096});
  const Given b = {.address = kA, .size = 1000, .block = 1024, .id = 3};
  EXPECT_TRUE(Objects({segment, Free(b)}, "no live block"));
  EXPECT_TRUE(Objects({segment, Alloc(b), Completed(b)}, "never requested"));
  EXPECT_TRUE(Objects({segment, Alloc(b), Free(b), Free(b)}, "already requested"));
  EXPECT_TRUE(Objects({segment, Alloc(b), Free(b), Completed(b), Completed(b)}, "no live block"));
  EXPECT_TRUE(Objects({segment, Alloc(b), Free({.address = kA, .size = 1024, .id = 3})},
                      "requested with 1000"));
  EXPECT_TRUE(Objects({segment, Alloc(b), Free({.address = kA, .size = 1000, .id = 4})}, "id 3"));
  // Still there until the free is complete.
  EXPECT_TRUE(Objects({segment, Alloc(b), Free(b), Alloc(b)}, "overlaps"));
}

TEST(OverlapCheckerTest, ObjectsToImpossibleSegments) {
  const Event segment = SegmentAlloc({.address = kA, .size = 4096});
  const Given b = {.address = kA + 1024, .size = 1000, .block = 1024};
  EXPECT_TRUE(Objects({segment, segment}, "overlaps"));
  EXPECT_TRUE(Objects({segment, Map({.address = kA + 2048, .size = 4096})}, "overlaps"));
  EXPECT_TRUE(Objects({segment, Alloc(b), SegmentFree({.address = kA, .size = 4096})}, "holds"));
  EXPECT_TRUE(Objects({segment, SegmentFree({.address = kA, .size = 2048})}, "the segment is"));
  EXPECT_TRUE(Objects({segment, SegmentFree({.address = kA + 512, .size = 512})}, "no segment"));
  EXPECT_TRUE(Objects({segment, Unmap({.address = kA, .size = 4096})}, "not all of it"));
}

TEST(OverlapCheckerTest, FollowsMappedRanges) {
  const Event low = Map({.address = kA, .size = 4096});
  const Event middle = Map({.address = kA + 4096, .size = 4096});
  const Event high = Map({.address = kA + 8192, .size = 4096});
  const Given across = {.address = kA + 2048, .size = 8192, .block = 8192};
  EXPECT_EQ(
      Check({low, high, middle, Alloc(across), Free(across), Completed(across),
             Unmap({.address = kA + 2048, .size = 4096}), Alloc({.address = kA, .size = 2048}),
             Alloc({.address = kA + 6144, .size = 6144})}),
      "");
  EXPECT_TRUE(Objects({low, high, Alloc(across)}, "not within a single"));
  EXPECT_TRUE(Objects({low, middle, high, Alloc(across), Unmap({.address = kA, .size = 4096})},
                      "holds live block"));
  EXPECT_TRUE(Objects({low, high, Unmap({.address = kA, .size = 8192})}, "not all of it"));
  EXPECT_TRUE(Objects({low, middle, middle}, "overlaps"));
  EXPECT_TRUE(
      Objects({low, Map({.address = kA + 4096, .size = 4096, .stream = 1}), high, Alloc(across)},
              "not within a single"));
  EXPECT_TRUE(Objects({low, SegmentFree({.address = kA, .size = 4096})}, "no segment"));
}

TEST(OverlapCheckerTest, BeginsAtAGivenState) {
  SegmentInfo segment;
  segment.address = Address(kA);
  segment.total_size = Bytes(4096);
  segment.blocks = {
      {.address = Address(kA),
       .size = Bytes(1024),
       .requested_size = Bytes(1000),
       .state = BlockState::kAllocated,
       .id = 0},
      {.address = Address(kA + 1024), .size = Bytes(3072), .requested_size = Bytes(0)}};
  EXPECT_EQ(Check({Snapshot(1024), Alloc({.address = kA + 1024, .size = 5, .id = 1, .stream = 4}),
                   Free({.address = kA, .size = 1000, .id = 0})},
                  {segment}),
            "");
  EXPECT_NE(Check({Alloc({.address = kA + 512, .size = 5})}, {segment}), "");
}

}  // namespace
}  // namespace memreplay
