#include "report/words/render_json.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "proto/report.pb.h"

namespace memreplay {
namespace {

std::string OneLine(const google::protobuf::Message& message) {
  return RenderJson(message, JsonLayout::kOneLine);
}

TEST(RenderJson, PrintsEveryPlainFieldButNoAbsentMessage) {
  proto::Fidelity fidelity;
  fidelity.set_compared_events(int64_t{1} << 40);
  EXPECT_EQ(OneLine(fidelity), "{\"compared_events\":1099511627776,\"matched_events\":0}\n");
  fidelity.mutable_first_divergence()->mutable_recorded()->set_action("alloc");
  EXPECT_EQ(
      OneLine(fidelity),
      "{\"compared_events\":1099511627776,\"matched_events\":0,\"first_divergence\":"
      "{\"index\":0,\"recorded\":{\"action\":\"alloc\",\"addr\":0,\"size\":0,\"stream\":0}}}\n");
  const std::string json = OneLine(proto::DeviceReport());
  EXPECT_NE(json.find("\"diagnostics\":[]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"statistics\":{}"), std::string::npos) << json;
}

TEST(RenderJson, PrintsIntegersAsNumbersWhereADoubleHoldsThem) {
  const int64_t most = int64_t{1} << 53;
  proto::FinalBlocks blocks;
  for (const auto& [value, text] :
       {std::pair(most, "9007199254740992"),
        {-most, "-9007199254740992"},
        {most + 1, "\"9007199254740993\""},
        {-most - 1, "\"-9007199254740993\""},
        {std::numeric_limits<int64_t>::min(), "\"-9223372036854775808\""}}) {
    blocks.set_compared(value);
    EXPECT_EQ(OneLine(blocks), std::string("{\"compared\":") + text + ",\"matched\":0}\n");
  }
}

TEST(RenderJson, PrintsEnumsByName) {
  proto::Counterfactual answer;
  answer.set_kind(proto::Counterfactual::empty_cache);
  EXPECT_NE(OneLine(answer).find("\"kind\":\"empty_cache\""), std::string::npos);
  // One that was set is there, though it is the first of its values.
  proto::Job::Row row;
  EXPECT_EQ(OneLine(row).find("verdict"), std::string::npos);
  row.set_verdict(proto::Verdict::none);
  EXPECT_NE(OneLine(row).find("\"verdict\":\"none\""), std::string::npos);
}

TEST(RenderJson, EscapesTextsAndPrintsDoublesShortest) {
  proto::SweepRow row;
  row.set_conf("a\"\\\n\x01<\xc3\xa9");
  row.set_fragmentation(0.1);
  row.set_memory_fraction(std::numeric_limits<double>::infinity());
  row.set_driver_seconds(1e-300);
  const std::string json = OneLine(row);
  EXPECT_NE(json.find("\"conf\":\"a\\\"\\\\\\n\\u0001<\xc3\xa9\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"fragmentation\":0.1,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"memory_fraction\":\"Infinity\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"driver_seconds\":1e-300"), std::string::npos) << json;
}

TEST(RenderJson, IsReadBackByProtobuf) {
  proto::Report report;
  proto::DeviceReport& device = *report.add_devices();
  device.set_mode(proto::Mode::sweep);
  device.set_events(int64_t{1} << 60);
  device.add_segments()->add_segment_pool_id(7);
  device.mutable_page()->add_maps()->set_moment(proto::Page::BlockMap::end);
  device.mutable_sweep()->add_rows()->set_fragmentation(1.0 / 3);
  (*device.mutable_rules())["a"] = 3;
  for (const JsonLayout layout : {JsonLayout::kIndented, JsonLayout::kOneLine}) {
    proto::Report back;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(RenderJson(report, layout), &back).ok());
    EXPECT_EQ(back.DebugString(), report.DebugString());
  }
}

TEST(RenderJson, IndentsByOneAndEndsWithANewline) {
  proto::PinnedSegment segment;
  segment.add_segment_pool_id(0);
  segment.add_segment_pool_id(1);
  const std::string json = RenderJson(segment, JsonLayout::kIndented);
  EXPECT_NE(json.find("{\n \"address\": 0,\n"), std::string::npos) << json;
  EXPECT_NE(json.find("\n \"segment_pool_id\": [\n  0,\n  1\n ],\n \"pins\": []\n}\n"),
            std::string::npos)
      << json;
}

TEST(RenderJson, PrintsMapsInKeyOrder) {
  proto::DeviceReport device;
  auto& statistics = *device.mutable_statistics();
  for (int i = 999; i >= 100; --i) statistics["stat_" + std::to_string(i)] = i;
  const std::string json = OneLine(device);
  size_t at = 0;
  for (int i = 100; i <= 999; ++i) {
    at = json.find("\"stat_" + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

}  // namespace
}  // namespace memreplay
