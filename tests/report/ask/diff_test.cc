#include "report/ask/diff.h"

#include <gtest/gtest.h>

#include "report/ask/parse_json.h"
#include "report/words/render_json.h"
#include "report/words/version.h"

namespace memreplay {
namespace {

DiffSide Side(int64_t reserved, uint64_t size) {
  DiffSide side;
  proto::DeviceReport& device = *side.report.add_devices();
  device.set_mode(proto::Mode::inspect);
  device.set_peak_reserved_bytes(reserved);
  auto trace = std::make_shared<Trace>();
  trace->is_program = true;
  trace->streams = {StreamHandle(0)};
  DeviceTrace& events = trace->devices.emplace_back();
  // The stacks of the two sides have different numbers.
  if (size > 100) trace->stacks.InternStack({trace->stacks.InternFrame({1, 1, 1})});
  const uint32_t name = trace->strings.Intern("tag");
  const uint32_t frame = trace->stacks.InternFrame({name, 0, 0});
  const uint32_t stack = trace->stacks.InternStack({frame});
  for (const uint64_t bytes : {size, uint64_t{7}}) {
    Event event;
    event.kind = EventKind::kAlloc;
    event.address = Address(bytes);
    event.size = Bytes(bytes);
    event.text_or_stack = stack;
    events.events.push_back(event);
  }
  side.trace = trace;
  return side;
}

TEST(DiffReports, MatchesStacksByTheirFrames) {
  const proto::Diff diff = DiffReports(Side(1000, 100), Side(3000, 300), {.top = 10, .filter = ""});
  ASSERT_EQ(diff.devices_size(), 1);
  const proto::DeviceDiff& device = diff.devices(0);
  EXPECT_EQ(device.figures(0).name(), "peak_reserved");
  EXPECT_EQ(device.figures(0).b(), 3000);
  ASSERT_EQ(device.stacks_size(), 1);
  EXPECT_EQ(device.stacks(0).a_bytes(), 107);
  EXPECT_EQ(device.stacks(0).b_bytes(), 307);
  EXPECT_EQ(device.stacks(0).stack().summary(), "tag");
  EXPECT_EQ(device.steps().first_difference(), -1);
  // The tag is no category.
  ASSERT_EQ(device.categories_size(), 1);
  EXPECT_EQ(device.categories(0).category(), "unknown");
  EXPECT_EQ(device.categories(0).a_bytes(), 107);
  EXPECT_EQ(device.categories(0).b_bytes(), 307);
}

TEST(DiffReports, ADeviceOfOneSideOnly) {
  DiffSide b = Side(1, 2);
  b.report.mutable_devices(0)->set_device(1);
  const proto::Diff diff = DiffReports(Side(1, 2), b, {.top = 10, .filter = ""});
  ASSERT_EQ(diff.devices_size(), 2);
  EXPECT_FALSE(diff.devices(0).in_b());
  EXPECT_FALSE(diff.devices(1).in_a());
}

TEST(ParseReport, ReadsWhatRenderJsonWrites) {
  proto::Report report;
  report.set_schema_version(kReportSchemaVersion);
  report.add_devices()->set_peak_reserved_bytes(int64_t{1} << 56);
  const std::string json = RenderJson(report, JsonLayout::kIndented);
  EXPECT_TRUE(LooksLikeReport(json));
  const auto parsed = ParseReport(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->devices(0).peak_reserved_bytes(), int64_t{1} << 56);
  EXPECT_TRUE(ParseReport("{\"schema_version\":4,\"of_tomorrow\":[]}").ok());
  EXPECT_EQ(ParseReport("{\"schema_version\":1}").status().message(),
            "a report of schema_version 1; this memreplay reads 4");
  EXPECT_FALSE(ParseReport(json + json).ok());
  EXPECT_FALSE(LooksLikeReport("{\"k\":\"h\"}"));
}

}  // namespace
}  // namespace memreplay
