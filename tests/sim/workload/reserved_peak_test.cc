#include "sim/workload/reserved_peak.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace memreplay {
namespace {

constexpr uint64_t kFirstSegment = 0x500000000000;

Event RecordedEvent(EventKind kind, uint64_t address, uint64_t size) {
  Event event;
  event.kind = kind;
  event.address = Address(address);
  event.size = Bytes(size);
  return event;
}

uint64_t OfRecording(std::vector<Event> events) {
  auto trace = std::make_shared<Trace>();
  trace->streams = {StreamHandle(0)};
  trace->devices.emplace_back().events = std::move(events);
  return AllocationsBeforePeak(Schedule::Build(trace, 0));
}

TEST(AllocationsBeforePeak, EndWhereMostIsLiveOfTheMomentsWithMostReserved) {
  std::vector<Event> events;
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t at = kFirstSegment + (i << 30);
    events.push_back(RecordedEvent(EventKind::kSegmentAlloc, at, 20 << 20));
    events.push_back(RecordedEvent(EventKind::kAlloc, at, 12 << 20));
  }
  EXPECT_EQ(OfRecording(events), 7u);
}

// What was live when the recording began is freed first, so that less than nothing seems live.
TEST(AllocationsBeforePeak, AreFoundBelowAnUnknownStart) {
  std::vector<Event> events;
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t at = kFirstSegment + (i << 30);
    events.push_back(RecordedEvent(EventKind::kFree, at, 12 << 20));
    events.push_back(RecordedEvent(EventKind::kFreeCompleted, at, 12 << 20));
  }
  events.push_back(RecordedEvent(EventKind::kAlloc, kFirstSegment, 12 << 20));
  EXPECT_EQ(OfRecording(events), 0u);
}

}  // namespace
}  // namespace memreplay
