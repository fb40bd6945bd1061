#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/report.pb.h"
#include "report/text/render.h"
#include "report/words/render_json.h"
#include "report/words/verdict.h"
#include "tests/golden.h"

namespace memreplay {
namespace {

// A hand-made report, golden/NAME.textproto, and how it must read,
// golden/NAME.txt and golden/NAME.json.
class RenderTextTest : public testing::TestWithParam<const char*> {};

proto::Report ReadReport(const std::string& name) {
  proto::Report report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      ReadTestFile("tests/report/golden/" + name + ".textproto"), &report))
      << name;
  AddFaults(&report);
  return report;
}

TEST_P(RenderTextTest, ReadsAsExpected) {
  const proto::Report report = ReadReport(GetParam());
  ExpectGolden(std::string("tests/report/golden/") + GetParam() + ".txt", RenderText(report).text);
  ExpectGolden(std::string("tests/report/golden/") + GetParam() + ".json",
               RenderJson(report, JsonLayout::kIndented));
}

INSTANTIATE_TEST_SUITE_P(All, RenderTextTest,
                         testing::Values("as_recorded", "diverged", "what_if", "program", "inspect",
                                         "no_trace"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(FindFaults, NamesEachReason) {
  EXPECT_FALSE(HasFaults(ReadReport("as_recorded")));
  EXPECT_TRUE(HasFaults(ReadReport("diverged")));
  EXPECT_FALSE(HasFaults(ReadReport("inspect")));

  proto::DeviceReport device;
  EXPECT_TRUE(FindFaults(device).empty());
  device.mutable_final_blocks()->set_compared(5);
  device.mutable_final_blocks()->set_matched(4);
  device.set_ooms(3);
  device.add_failures()->set_message("x");
  device.add_diagnostics()->set_severity(proto::Diagnostic::data_loss);
  device.add_diagnostics()->set_severity(proto::Diagnostic::error);
  device.mutable_diagnostics(1)->set_sentence("an allocation overlaps a live block");
  device.mutable_diagnostics(1)->set_count(2);
  const std::vector<std::string> as_recorded = FindFaults(device);
  ASSERT_EQ(as_recorded.size(), 3u);
  EXPECT_EQ(as_recorded[0], "1 block of the final state differs from the recording");
  EXPECT_EQ(as_recorded[1], "1 request raises an exception");
  EXPECT_EQ(as_recorded[2],
            "the file contradicts itself 2 times: an allocation overlaps a live block");

  // Running out of memory is bad only where the recording did not.
  device.set_mode(proto::Mode::what_if);
  EXPECT_EQ(FindFaults(device)[1], "out of memory 3 times");
  device.mutable_recorded()->set_ooms(2);
  EXPECT_EQ(FindFaults(device)[1], "out of memory 1 time more than in the recording");
  device.mutable_first_oom()->set_event_index(581);
  EXPECT_EQ(FindFaults(device)[1],
            "out of memory 1 time more than in the recording, first at event 581");
  device.mutable_first_oom()->mutable_stack()->set_summary("kv_cache");
  device.mutable_first_oom()->mutable_stack()->set_depth(1);
  EXPECT_EQ(FindFaults(device)[1],
            "out of memory 1 time more than in the recording, first at event 581 (kv_cache)");
  device.mutable_recorded()->set_ooms(3);
  EXPECT_EQ(FindFaults(device).size(), 3u);
}

}  // namespace
}  // namespace memreplay
