#include "report/device/inventory.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "report/words/text.h"
#include "trace/bytes/json_scanner.h"

namespace memreplay {
namespace {

struct Step {
  EventKind kind;
  uint64_t size;
  uint64_t address = 0;
  uint32_t stream = 0;
};

Trace MakeTrace(std::initializer_list<Step> steps) {
  Trace trace;
  trace.streams = {StreamHandle(0), StreamHandle(7)};
  DeviceTrace& device = trace.devices.emplace_back();
  for (const Step& step : steps) {
    Event& event = device.events.emplace_back();
    event.kind = step.kind;
    event.size = Bytes(step.size);
    event.address = Address(step.address);
    event.stream = step.stream;
  }
  return trace;
}

// Adds one segment of 2 MiB: 512 B allocated (100 requested), the rest free.
void AddFinalState(Trace& trace) {
  DeviceTrace& device = trace.devices[0];
  device.has_final_state = true;
  SegmentInfo segment;
  segment.address = Address(0x10000000);
  segment.total_size = MiB(2);
  BlockInfo block;
  block.address = segment.address;
  block.size = Bytes(512);
  block.requested_size = Bytes(100);
  block.state = BlockState::kAllocated;
  segment.blocks.push_back(block);
  block.address = segment.address + Bytes(512);
  block.size = MiB(2) - Bytes(512);
  block.requested_size = Bytes(77);
  block.state = BlockState::kInactive;
  segment.blocks.push_back(block);
  device.final_state.push_back(segment);
}

TEST(Inventory, ColdRecordingStartsFromNothing) {
  Trace trace = MakeTrace({{EventKind::kSegmentAlloc, 2 << 20},
                           {EventKind::kAlloc, 1000},
                           {EventKind::kAlloc, 100, 0, 1},
                           {EventKind::kFree, 1000},
                           {EventKind::kFreeCompleted, 1000},
                           {EventKind::kOom, 5000}});
  AddFinalState(trace);
  const DeviceContents contents = DescribeContents(trace, 0);
  EXPECT_TRUE(contents.inventory.is_cold());
  EXPECT_EQ(contents.inventory.start_allocations(), 0);
  EXPECT_EQ(contents.peaks.peak_requested_bytes(), 1100);
  EXPECT_EQ(contents.peaks.peak_reserved_bytes(), 2 << 20);
  EXPECT_EQ(contents.peaks.ooms(), 1);
  EXPECT_EQ(contents.inventory.actions().at("alloc"), 2);
  EXPECT_EQ(contents.inventory.actions().at("free_requested"), 1);
  EXPECT_EQ(contents.inventory.actions().count("segment_free"), 0u);
  EXPECT_EQ(contents.inventory.final_allocated_bytes(), 512);
  ASSERT_EQ(contents.inventory.streams_size(), 2);
  EXPECT_EQ(contents.inventory.streams(0).requested_bytes(), 1000);
  EXPECT_EQ(contents.inventory.streams(0).segments(), 1);
  EXPECT_EQ(contents.inventory.streams(1).stream(), 7);
  EXPECT_EQ(contents.inventory.streams(1).allocs(), 1);
}

TEST(Inventory, WarmRecordingIsUndoneFromTheEnd) {
  // Two blocks of 1 MiB and a segment of 20 MiB were there before.
  Trace trace = MakeTrace({{EventKind::kFree, 1 << 20},
                           {EventKind::kFreeCompleted, 1 << 20},
                           {EventKind::kSegmentFree, 20 << 20},
                           {EventKind::kAlloc, 100},
                           {EventKind::kFree, 1 << 20},
                           {EventKind::kFreeCompleted, 1 << 20}});
  AddFinalState(trace);
  const DeviceContents contents = DescribeContents(trace, 0);
  EXPECT_FALSE(contents.inventory.is_cold());
  EXPECT_EQ(contents.inventory.start_allocations(), 2);
  EXPECT_EQ(contents.inventory.start_requested_bytes(), 2 << 20);
  EXPECT_EQ(contents.inventory.start_reserved_bytes(), 22 << 20);
  EXPECT_EQ(contents.peaks.peak_reserved_bytes(), 22 << 20);
  EXPECT_EQ(contents.peaks.peak_requested_bytes(), 2 << 20);
}

TEST(Inventory, WithoutAFinalStateTheLeastThatTheEventsNeed) {
  const Trace trace = MakeTrace({{EventKind::kFreeCompleted, 50},  // over when the recording begins
                                 {EventKind::kFreeCompleted, 300},
                                 {EventKind::kAlloc, 100},
                                 {EventKind::kFreeCompleted, 100}});
  const DeviceContents contents = DescribeContents(trace, 0);
  EXPECT_EQ(contents.inventory.start_requested_bytes(), 300);
  EXPECT_EQ(contents.inventory.start_allocations(), 1);
  EXPECT_EQ(contents.peaks.peak_requested_bytes(), 300);
}

TEST(Inventory, ProgramsFreeByHandle) {
  Trace trace = MakeTrace({{EventKind::kAlloc, 100, 1},
                           {EventKind::kAlloc, 200, 2},
                           {EventKind::kFree, 0, 1},
                           {EventKind::kFree, 0, 1},
                           {EventKind::kAlloc, 50, 1}});
  trace.is_program = true;
  const DeviceContents contents = DescribeContents(trace, 0);
  EXPECT_TRUE(contents.inventory.is_cold());
  EXPECT_EQ(contents.peaks.peak_requested_bytes(), 300);
}

TEST(FragmentationOf, AddsUpWhatIsFree) {
  Trace trace = MakeTrace({});
  AddFinalState(trace);
  const proto::Fragmentation f = FragmentationOf(trace.devices[0].final_state);
  EXPECT_EQ(f.internal_bytes(), 412);
  EXPECT_EQ(f.inactive_split_bytes(), (2 << 20) - 512);
  EXPECT_EQ(f.reserved_minus_active_bytes(), (2 << 20) - 512);
  ASSERT_EQ(f.largest_free_size(), 1);
  EXPECT_EQ(f.largest_free(0).segment_type(), proto::SegmentType::small);
  EXPECT_EQ(f.largest_free(0).free_blocks(), 1);

  // Neighbours in an expandable segment are not split blocks.
  trace.devices[0].final_state[0].is_expandable = true;
  EXPECT_EQ(FragmentationOf(trace.devices[0].final_state).inactive_split_bytes(), 0);
}

TEST(AddSegments, SpeaksPyTorch) {
  Trace trace = MakeTrace({});
  AddFinalState(trace);
  proto::DeviceReport report;
  AddSegments(trace.devices[0].final_state, report.mutable_segments());
  ASSERT_EQ(report.segments_size(), 1);
  EXPECT_EQ(report.segments(0).ShortDebugString(),
            "address: 268435456 total_size: 2097152 allocated_size: 512 active_size: 512 "
            "requested_size: 100 segment_pool_id: 0 segment_pool_id: 0 "
            "blocks { address: 268435456 size: 512 requested_size: 100 } "
            "blocks { address: 268435968 size: 2096640 requested_size: 77 "
            "state: inactive }");
}

TEST(CleanText, KeepsUtf8Only) {
  EXPECT_EQ(CleanText("plain"), "plain");
  EXPECT_EQ(CleanText("\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80"),
            "\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80");
  EXPECT_EQ(CleanText("a\xff\nb\x1b[0m\xc3"), "a??b?[0m?");
  EXPECT_EQ(CleanText("\xc0\x80\xed\xa0\x80\xf5\x80\x80\x80"), "?????????");
}

// The characters that control the text around them or cannot be seen, at the edges of their ranges.
TEST(CleanText, KeepsWhatIsSeen) {
  for (const char* hidden :
       {"\u00ad", "\u034f", "\u061c",     "\u115f",     "\u1160",     "\u17b4",
        "\u180b", "\u180e", "\u180f",     "\u200b",     "\u200c",     "\u200d",
        "\u200f", "\u2028", "\u202e",     "\u2060",     "\u2064",     "\u2066",
        "\u206f", "\u3164", "\ufe0f",     "\ufeff",     "\uffa0",     "\ufff9",
        "\ufffb", "\uffff", "\U0001d173", "\U000e0001", "\U000e0100", "\U000e0fff"}) {
    const std::string text = std::string("a") + hidden + "b";
    EXPECT_EQ(CleanText(text), "a?b") << text;
    std::string json;
    AppendJsonString(text, &json);
    EXPECT_TRUE(json.starts_with("\"a\\u")) << json;
  }
  for (const char* seen : {"\u00ae", "\u0300", "\u0915\u094d", "\u1100", "\u200a", "\u2010",
                           "\u3042", "\ufe10", "\ufffd", "\U0001f600"}) {
    EXPECT_EQ(CleanText(seen), seen);
  }
}

TEST(CleanText, IsCutBetweenCharacters) { EXPECT_EQ(CleanText("ab\u00e4\u4e2d", 3), "ab ..."); }

}  // namespace
}  // namespace memreplay
