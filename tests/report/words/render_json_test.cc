#include "report/words/render_json.h"

#include <gtest/gtest.h>

#include <string>

namespace memreplay {
namespace {

proto::Report SmallReport() {
  proto::Report report;
  report.set_schema_version(1);
  report.set_command("replay");
  proto::DeviceReport& device = *report.add_devices();
  device.mutable_fidelity()->set_compared_events(int64_t{1} << 40);
  *device.mutable_fidelity()->mutable_first_divergence() = DivergenceValue(nullptr);
  return report;
}

TEST(RenderJson, PrintsSnakeCaseAndEveryPlainField) {
  const std::string json = RenderJson(SmallReport(), JsonLayout::kOneLine);
  EXPECT_NE(json.find("\"compared_events\":\"1099511627776\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"matched_events\":\"0\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"diagnostics\":[]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"statistics\":{}"), std::string::npos) << json;
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

TEST(RenderJson, ShowsThatNothingDiverged) {
  EXPECT_NE(RenderJson(SmallReport(), JsonLayout::kOneLine).find("\"first_divergence\":null"),
            std::string::npos);
  EXPECT_NE(RenderJson(SmallReport(), JsonLayout::kIndented).find("\"first_divergence\": null"),
            std::string::npos);
}

TEST(RenderJson, ShowsADivergenceInItsOwnMapping) {
  proto::Divergence divergence;
  divergence.set_index(91);
  divergence.mutable_recorded()->set_action("alloc");
  divergence.mutable_recorded()->set_addr(0x7f0000000000);
  proto::Report report = SmallReport();
  *report.mutable_devices(0)->mutable_fidelity()->mutable_first_divergence() =
      DivergenceValue(&divergence);
  EXPECT_NE(RenderJson(report, JsonLayout::kOneLine)
                .find("\"first_divergence\":{\"index\":\"91\",\"recorded\":{\"action\":\"alloc\","
                      "\"addr\":\"139637976727552\",\"size\":\"0\",\"stream\":\"0\"}}"),
            std::string::npos)
      << RenderJson(report, JsonLayout::kOneLine);
}

TEST(RenderJson, PrintsMapsInKeyOrder) {
  proto::Report report;
  auto& statistics = *report.add_devices()->mutable_statistics();
  for (int i = 999; i >= 100; --i) statistics["stat_" + std::to_string(i)] = i;
  const std::string json = RenderJson(report, JsonLayout::kOneLine);
  size_t at = 0;
  for (int i = 100; i <= 999; ++i) {
    at = json.find("\"stat_" + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

}  // namespace
}  // namespace memreplay
