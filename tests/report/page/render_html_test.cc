#include "report/page/render_html.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "report/words/verdict.h"
#include "tests/golden.h"

namespace memreplay {
namespace {

constexpr char kHostile[] =
    "</script><img src=x onerror=alert(1)><!-- \xe2\x80\xa8 <script> &lt; \" ' </title></style>";

// Two runs of a program, with everything that a page shows.
proto::Report Example(const std::string& name) {
  proto::Report report;
  report.set_schema_version(1);
  report.set_tool_version("0.0.0");
  report.set_command("report");
  report.set_file("dir/" + name);
  report.set_format("flat_jsonl");
  proto::DeviceReport& device = *report.add_devices();
  device.set_mode(proto::Mode::what_if);
  device.mutable_torch()->set_release("2.15");
  device.mutable_torch()->set_why(name);
  device.set_conf("key:" + name);
  device.set_events(4);
  device.set_peak_reserved_bytes(int64_t{8} << 30);
  device.set_peak_allocated_bytes(int64_t{6} << 30);
  device.set_peak_requested_bytes(6'000'000'000);
  device.set_ooms(1);
  (*device.mutable_statistics())["num_alloc_retries"] = 3;
  device.mutable_inventory()->set_is_program(true);
  device.add_notes(name);
  proto::RequestFailure& failure = *device.add_failures();
  failure.set_request(3);
  failure.set_message(name);
  proto::Diagnostic& diagnostic = *device.add_diagnostics();
  diagnostic.set_name("leak");
  diagnostic.set_severity(proto::Diagnostic::info);
  diagnostic.set_count(2);
  diagnostic.set_sentence("allocations are live at the end");
  diagnostic.add_places()->set_detail(name);
  device.mutable_fragmentation()->set_reserved_minus_active_bytes(int64_t{2} << 30);

  proto::Page& page = *device.mutable_page();
  page.set_positions(4);
  for (const int64_t position : {0, 1, 3}) {
    page.mutable_curve()->add_position(position);
    page.mutable_curve()->add_reserved_bytes(int64_t{8} << 30);
  }
  page.mutable_curve()->add_oom_position(3);
  page.mutable_curve()->add_oom_bytes(int64_t{4} << 30);
  page.add_frames(name);
  page.add_frames("train.py:7 main");
  proto::Page::Stack& stack = *page.add_stacks();
  stack.set_summary(name);
  stack.add_frames(0);
  stack.add_frames(1);
  stack.set_depth(3);
  proto::Page::Holdings& holdings = *page.mutable_holdings();
  holdings.set_position(1);
  holdings.set_requested_bytes(1000);
  holdings.add_stacks()->set_requested_bytes(750);
  holdings.add_stacks()->set_requested_bytes(250);
  holdings.add_categories()->set_category(name);
  page.add_phases()->set_name(name);
  proto::Page::BlockMap& map = *page.add_maps();
  map.set_moment(proto::Page::BlockMap::peak);
  map.add_groups()->set_segments(1);
  proto::DeviceReport& other = *page.add_others()->mutable_report();
  other = proto::DeviceReport(device);  // a copy: it is about to be a part of the other
  other.clear_page();
  device.mutable_oom()->set_verdict(proto::Verdict::true_shortage);
  device.mutable_oom()->set_sentence(name);
  proto::Advice::Row& change = *device.mutable_advice()->add_rows();
  change.set_change(name);
  change.set_peak_reserved_bytes(int64_t{5} << 30);
  change.set_cost(name);
  change.set_preserves_text(name);
  change.add_lines(name);
  change.add_lines("train()");
  device.mutable_advice()->add_serving_rows(0);
  other.set_peak_reserved_bytes(int64_t{6} << 30);
  AddFaults(&report);
  return report;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string JsonOf(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"report\">";
  const size_t from = html.find(begin) + begin.size();
  return html.substr(from, html.find("</script>", from) - from);
}

TEST(RenderHtml, HostileNamesStayText) {
  const std::string friendly = RenderHtml(Example("step"));
  const std::string hostile = RenderHtml(Example(kHostile));
  // The same elements, whatever the names.
  for (const std::string part : {"</script", "<script", "<img", "<!--", "</style", "</title"}) {
    EXPECT_EQ(Count(hostile, part), Count(friendly, part)) << part;
  }
  EXPECT_EQ(Count(hostile, "onerror=alert(1)&gt;"),
            Count(hostile, "onerror=alert") - Count(JsonOf(hostile), "onerror=alert"));
  EXPECT_EQ(JsonOf(hostile).find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(Count(JsonOf(hostile), "\xe2\x80\xa8"), 0u);
}

TEST(RenderHtml, HoldsTheReport) {
  for (const std::string name : {"step", kHostile}) {
    proto::Report report = Example(name);
    proto::Report read;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(JsonOf(RenderHtml(report)), &read).ok());
    // This leaves out what the run's columns show.
    for (proto::DeviceReport& device : *report.mutable_devices()) {
      device.mutable_page()->clear_curve();
      device.mutable_page()->clear_maps();
      device.mutable_page()->clear_stacks();
      device.mutable_page()->clear_frames();
      device.mutable_page()->clear_holdings();
    }
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(report, read));
  }
}

TEST(RenderHtml, IsAFunctionOfTheReport) {
  EXPECT_EQ(RenderHtml(Example(kHostile)), RenderHtml(Example(kHostile)));
}

// The page fetches nothing: no address outside of it appears as one.
TEST(RenderHtml, FetchesNothing) {
  const std::string html = RenderHtml(Example("step"));
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(Count(html, "src=\"http"), 0u);
  EXPECT_EQ(Count(html, "@import"), 0u);
  EXPECT_EQ(Count(html, "url(http"), 0u);
  EXPECT_EQ(Count(html, "<link"), 1u);
  EXPECT_EQ(Count(html, "href="), Count(html, "href=\"data:,\""));
}

TEST(RenderHtml, ShowsTheLicenceOfTheLibrary) {
  const std::string html = RenderHtml(Example("step"));
  EXPECT_NE(html.find("Redistribution and use in source and binary forms"), std::string::npos);
}

// This is what is there without scripts. Hashes and the style change with the files that they are
// of.
TEST(RenderHtml, Golden) {
  std::string html = RenderHtml(Example("step"));
  html = html.substr(0, html.find("<footer>"));
  const size_t style = html.find("<style>") + 7;
  html.erase(style, html.find("</style>") - style);
  html = std::regex_replace(html, std::regex("sha256-[A-Za-z0-9+/=]+"), "sha256-...");
  ExpectGolden("tests/report/golden/page.html", html);
}

TEST(EscapeJsonForScript, EscapesWhatEndsScriptsAndLines) {
  EXPECT_EQ(EscapeJsonForScript("\"</a>&\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\""),
            "\"\\u003c/a\\u003e\\u0026\\u2028\\u2029\xe2\x80\xaa\xe2\"");
}

}  // namespace
}  // namespace memreplay
