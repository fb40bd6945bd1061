#include "report/ask/page.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "report/device/device_report.h"
#include "report/device/inventory.h"
#include "sim/study/what_if.h"

namespace memreplay {
namespace {

// A program: phases of 20 allocations of a MiB each, every second freed again.
std::shared_ptr<Trace> Program(int phases) {
  auto trace = std::make_shared<Trace>();
  trace->format = "test";
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  trace->total_memory = GiB(16);
  DeviceTrace& device = trace->devices.emplace_back();
  uint64_t handle = 1;
  const uint32_t tag = trace->strings.Intern("weights");
  const uint32_t stack = trace->stacks.InternStack({trace->stacks.InternFrame({.filename = tag})});
  const auto add = [&](EventKind kind, uint64_t id, Bytes size) -> Event& {
    Event& event = device.events.emplace_back();
    event.kind = kind;
    event.address = Address(id);
    event.size = size;
    return event;
  };
  for (int phase = 0; phase < phases; ++phase) {
    Event& mark = add(EventKind::kMark, 0, Bytes(static_cast<uint64_t>(MarkKind::kPhase)));
    mark.text_or_stack = trace->strings.Intern("phase " + std::to_string(phase));
    for (int i = 0; i < 20; ++i) {
      add(EventKind::kAlloc, handle, MiB(2)).text_or_stack = stack;
      if (i % 2 == 1) add(EventKind::kFree, handle, Bytes());
      ++handle;
    }
  }
  return trace;
}

struct Made {
  proto::DeviceReport report;
  Usage peak;
};

Made Make(const std::shared_ptr<const Trace>& trace, const PageLimits& limits) {
  const Schedule schedule = Schedule::Build(trace, 0);
  const auto settings = ResolveSettings(*trace, {});
  EXPECT_TRUE(settings.ok()) << settings.status();
  HistoryObserver history(schedule, HistoryObserver::Clock::kRequests, limits.timeline_buckets);
  WhatIfOptions options;
  options.fragmentation = true;
  options.keep_segments = true;
  const auto result = ReplayWhatIf(schedule, *settings, &history, options);
  EXPECT_TRUE(result.ok()) << result.status();
  Made made{ReportWhatIf(schedule, *settings, {}, *result), result->peak};
  AddPage(schedule, FindMeanings(schedule), FindUnsimulated(schedule), history,
          &result->fragmentation->segments, result->segments, limits, &made.report);
  return made;
}

TEST(AddPage, CurveIsExactWhereItFits) {
  const Made made = Make(Program(2), {});
  const proto::Page& page = made.report.page();
  EXPECT_EQ(page.positions(), 2 * 31);
  const proto::Page::Curve& curve = page.curve();
  EXPECT_TRUE(curve.complete());
  EXPECT_EQ(curve.position_size(), curve.events());
  EXPECT_TRUE(std::is_sorted(curve.position().begin(), curve.position().end()));
  EXPECT_EQ(curve.position(0), 0);
  EXPECT_EQ(curve.position(curve.position_size() - 1), 61);
  EXPECT_EQ(curve.reserved_bytes(curve.reserved_bytes_size() - 1),
            made.report.peak_reserved_bytes());
  // Request 1 allocates; requests 2 and 3 allocate and free.
  EXPECT_EQ(curve.allocated_bytes_size(), curve.position_size());
  EXPECT_EQ(curve.allocated_bytes(0), 0);
  EXPECT_EQ(curve.segment_bytes_size(), made.report.statistics().at("num_device_alloc"));
  const int64_t gained =
      std::accumulate(curve.segment_bytes().begin(), curve.segment_bytes().end(), int64_t{0});
  EXPECT_EQ(gained, made.report.peak_reserved_bytes());
  ASSERT_EQ(page.phases_size(), 2);
  EXPECT_EQ(page.phases(1).position(), 31);
  EXPECT_EQ(page.phases(1).name(), "phase 1");
}

TEST(AddPage, LimitsKeepPeaks) {
  PageLimits limits;
  limits.timeline_buckets = 8;
  limits.marks = 5;
  limits.map_blocks = 30;
  const Made made = Make(Program(100), limits);
  const proto::Page& page = made.report.page();
  EXPECT_FALSE(page.curve().complete());
  EXPECT_LE(page.curve().position_size(), 9 * 8);
  const auto highest = [](const auto& column) {
    return *std::max_element(column.begin(), column.end());
  };
  EXPECT_EQ(highest(page.curve().reserved_bytes()), made.peak.reserved().signed_value());
  EXPECT_EQ(highest(page.curve().allocated_bytes()), made.peak.allocated().signed_value());
  EXPECT_EQ(highest(page.curve().requested_bytes()), made.peak.requested().signed_value());
  EXPECT_EQ(page.curve().segment_bytes_size(), 5);
  EXPECT_EQ(page.curve().left_out_segments() + 5, made.report.statistics().at("num_device_alloc"));
  EXPECT_EQ(page.phases_size(), 5);
  EXPECT_EQ(page.left_out_phases(), 95);

  ASSERT_EQ(page.maps_size(), 2);
  for (const proto::Page::BlockMap& map : page.maps()) {
    int64_t drawn = 0;
    size_t blocks = 0;
    for (const proto::Page::MapSegment& segment : map.segments()) {
      drawn += segment.total_size();
      blocks += segment.states().size();
    }
    EXPECT_LE(blocks, 30u);
    EXPECT_GT(map.left_out_segments(), 0);
    EXPECT_EQ(drawn + map.left_out_bytes(), map.reserved_bytes());
    ASSERT_EQ(map.groups_size(), 1);
    EXPECT_EQ(map.groups(0).reserved_bytes(), map.reserved_bytes());
    EXPECT_EQ(map.groups(0).segments(), map.segments_size() + map.left_out_segments());
  }
  EXPECT_EQ(page.maps(0).moment(), proto::Page::BlockMap::peak);
  EXPECT_EQ(page.maps(0).reserved_bytes(), made.report.peak_reserved_bytes());
}

TEST(AddPage, MapTellsOfBlocks) {
  const Made made = Make(Program(1), {});
  const proto::Page& page = made.report.page();
  ASSERT_EQ(page.maps_size(), 2);
  const proto::Page::BlockMap& map = page.maps(1);
  EXPECT_EQ(map.moment(), proto::Page::BlockMap::end);
  int64_t live = 0;
  for (const proto::Page::MapSegment& segment : map.segments()) {
    int64_t sum = 0;
    int known = 0;
    ASSERT_EQ(segment.sizes_size(), static_cast<int>(segment.states().size()));
    for (int i = 0; i < segment.sizes_size(); ++i) {
      sum += segment.sizes(i);
      if (segment.states()[static_cast<size_t>(i)] == 'i') continue;
      EXPECT_EQ(segment.requested_sizes(known), int64_t{2} << 20);
      EXPECT_EQ(page.stacks(segment.stacks(known)).summary(), "weights");
      EXPECT_GT(segment.positions(known), 0);
      ++known;
      ++live;
    }
    EXPECT_EQ(sum, segment.total_size());
    EXPECT_EQ(known, segment.stacks_size());
    EXPECT_EQ(known, segment.positions_size());
  }
  EXPECT_EQ(live, 10);
  EXPECT_EQ(page.holdings().requested_bytes(), int64_t{22} << 20);
  ASSERT_EQ(page.holdings().categories_size(), 1);
  EXPECT_EQ(page.holdings().categories(0).category(), "weights");
  EXPECT_EQ(page.holdings().categories(0).allocations(), 11);
}

TEST(AddOther, LeavesOutWhatThePageDoesNotShow) {
  Made made = Make(Program(1), {});
  const auto trace = Program(1);
  const Schedule schedule = Schedule::Build(trace, 0);
  const HistoryObserver nothing(schedule, HistoryObserver::Clock::kRequests, 8);
  proto::DeviceReport other;
  other.set_conf("expandable_segments:True");
  other.add_segments();
  other.add_diagnostics();
  AddOther(nothing, {}, other, &made.report);
  ASSERT_EQ(made.report.page().others_size(), 1);
  EXPECT_EQ(made.report.page().others(0).report().conf(), "expandable_segments:True");
  EXPECT_EQ(made.report.page().others(0).report().segments_size(), 0);
  EXPECT_EQ(made.report.page().others(0).report().diagnostics_size(), 0);
}

}  // namespace
}  // namespace memreplay
