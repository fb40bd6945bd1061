#include "trace/value/trace_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memreplay {
namespace {

Event AllocOn(uint32_t stream) {
  Event event;
  event.kind = EventKind::kAlloc;
  event.stream = stream;
  return event;
}

TEST(TraceBuilder, SortsStreamsAndDevices) {
  TraceBuilder builder("test");
  const uint32_t high = builder.StreamNumber(StreamHandle(0x70));
  const uint32_t low = builder.StreamNumber(StreamHandle(0x20));
  EXPECT_EQ(builder.StreamNumber(StreamHandle(0x70)), high);
  builder.Add(1, AllocOn(high));
  builder.Add(0, AllocOn(low));
  builder.Add(0, AllocOn(TraceBuilder::kNoStream));
  const Trace trace = std::move(builder).Finish();
  EXPECT_EQ(trace.streams, (std::vector{StreamHandle(0x20), StreamHandle(0x70)}));
  ASSERT_EQ(trace.devices.size(), 2u);
  EXPECT_EQ(trace.devices[0].device, 0);
  EXPECT_EQ(trace.devices[0].events[0].stream, 0u);
  EXPECT_EQ(trace.devices[0].events[1].stream, 0u);
  EXPECT_EQ(trace.devices[1].events[0].stream, 1u);
  EXPECT_TRUE(CheckTrace(trace).ok());
}

TEST(TraceBuilder, AnEventWithoutATimeFollowsItsPredecessor) {
  TraceBuilder builder("test");
  const uint32_t stream = builder.StreamNumber(StreamHandle(0));
  builder.Add(0, AllocOn(stream));
  builder.AddAt(0, AllocOn(stream), 500);
  builder.Add(0, AllocOn(stream));
  EXPECT_EQ(builder.clock(0), 501);
  EXPECT_EQ(std::move(builder).Finish().devices[0].time_us, (std::vector<int64_t>{1, 500, 501}));
}

TEST(TraceBuilder, PoolsAreFullAtTheirIndex) {
  TraceBuilder builder("test");
  EXPECT_EQ(builder.PoolIndex({0, 0}), 0);
  for (uint64_t i = 1; i < TraceBuilder::kMaxPools; ++i) ASSERT_EQ(builder.PoolIndex({0, i}), i);
  EXPECT_EQ(builder.PoolIndex({0, 7}), 7);
  EXPECT_EQ(builder.PoolIndex({1, 0}), std::nullopt);
}

TEST(CheckTrace, NamesTheDefect) {
  const auto defect = [](void (*damage)(Trace&)) {
    TraceBuilder builder("test");
    builder.StreamNumber(StreamHandle(0));
    builder.Add(0, AllocOn(0));
    Trace trace = std::move(builder).Finish();
    damage(trace);
    return std::string(CheckTrace(trace).message());
  };
  EXPECT_EQ(defect([](Trace&) {}), "");
  const std::string wrong = "the trace is not well formed: ";
  EXPECT_EQ(defect([](Trace& trace) { trace.devices[0].events[0].stream = 1; }),
            wrong + "event 0 of device 0 is on a stream not in the table");
  EXPECT_EQ(defect([](Trace& trace) { trace.devices[0].events[0].text_or_stack = 1; }),
            wrong + "event 0 of device 0 refers to a text or stack not in the table");
  EXPECT_EQ(defect([](Trace& trace) {
              trace.devices[0].time_us = {1, 2};
            }),
            wrong + "device 0 has 1 events and 2 times");
  EXPECT_EQ(defect([](Trace& trace) { trace.devices[0].device = -1; }),
            wrong + "devices are not ascending from 0");
  EXPECT_EQ(defect([](Trace& trace) { trace.pools.push_back({}); }),
            wrong + "a pool is listed twice");
}

}  // namespace
}  // namespace memreplay
