#include "report/page/render_html.h"

#include "report/page/html.h"
#include "report/page/html_oom.h"
#include "report/page/html_sections.h"
#include "report/page/parts.h"
#include "report/words/answer.h"
#include "report/words/render_json.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string Head(const proto::Report& report) {
  // Nothing but the three parts of this page may run or style: a name that
  // slipped through the escaping could do nothing, and nothing is fetched.
  return StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src ",
      kStyleHash, "; script-src ", kChartLibraryHash, " ", kScriptHash,
      "; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n",
      Element("title", StrCat(report.file(), " - memreplay")), "\n<style>", kStyle,
      "</style>\n</head>\n");
}

std::string Answers(const proto::Report& report) {
  std::string html;
  for (const proto::DeviceReport& device : report.devices()) {
    const std::vector<std::string> faults = FindFaults(device);
    if (const std::string verdict = OomHeadline(device.oom()); !verdict.empty()) {
      StrAppend(
          &html,
          Element("p class=\"answer bad\"", StrCat("device ", device.device(), ": ", verdict, ".")),
          "\n");
    }
    StrAppend(&html, "<p class=\"answer", faults.empty() ? "" : " bad", "\">",
              EscapeHtml(StrCat("device ", device.device(), ": ", AnswerSentence(device), ".")),
              "</p>\n");
    for (const std::string& fault : faults) {
      StrAppend(&html, Element("p class=\"fault\"", StrCat("Wrong: ", fault, ".")), "\n");
    }
  }
  return html;
}

// `index` is the position in report.devices.
std::string Device(const proto::Report& report, int index) {
  const proto::DeviceReport& device = report.devices(index);
  return StrCat("<section class=\"device\" data-index=\"", index, "\">\n",
                Element("h2", StrCat("Device ", device.device())), "\n", KeyFigures(device),
                Circumstances(device), ComparisonTable(device), "<div class=\"workbench\"></div>\n",
                OutOfMemory(device), Tables(device), "</section>\n");
}

// What the run's columns tell better.
proto::Report WithoutDrawn(const proto::Report& report) {
  proto::Report small = report;
  for (proto::DeviceReport& device : *small.mutable_devices()) {
    proto::Page& page = *device.mutable_page();
    page.clear_curve();
    page.clear_maps();
    page.clear_stacks();
    page.clear_frames();
    page.clear_holdings();
  }
  return small;
}

}  // namespace

std::string EscapeJsonForScript(std::string_view json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      escaped += "\\u003c";
    } else if (c == '>') {
      escaped += "\\u003e";
    } else if (c == '&') {
      escaped += "\\u0026";
    } else if (c == '\xe2' &&
               (json.substr(i, 3) == "\xe2\x80\xa8" || json.substr(i, 3) == "\xe2\x80\xa9")) {
      escaped += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string RenderHtml(const proto::Report& report, const std::vector<RunData>& runs) {
  std::string html = Head(report);
  StrAppend(&html, "<body>\n<header>\n", Element("h1", report.file()), "\n", Answers(report),
            "</header>\n<noscript><p class=\"note\">The timeline and the block map need "
            "JavaScript; everything else is here without.</p></noscript>\n<main>\n");
  for (int i = 0; i < report.devices_size(); ++i) StrAppend(&html, Device(report, i));
  StrAppend(&html, "</main>\n<footer>\n<p class=\"note\">",
            EscapeHtml(StrCat("memreplay ", report.tool_version(), ", ", report.format(),
                              "; the figures are those of memreplay replay, defined in "
                              "docs/metrics.md.")),
            "</p>\n<details><summary>Licence of d3, which draws the charts</summary>",
            Element("pre", kChartLibraryLicence), "</details>\n</footer>\n");
  StrAppend(&html, "<script type=\"application/json\" id=\"report\">",
            EscapeJsonForScript(RenderJson(WithoutDrawn(report), JsonLayout::kOneLine)),
            "</script>\n");
  for (size_t i = 0; i < runs.size(); ++i) {
    StrAppend(&html, "<script type=\"application/json\" id=\"run-", i, "-head\">", runs[i].head,
              "</script>\n<script type=\"text/plain\" id=\"run-", i, "\">", runs[i].columns,
              "</script>\n");
  }
  StrAppend(&html, "<script>", kChartLibrary, "</script>\n<script>", kScript,
            "</script>\n</body>\n</html>\n");
  return html;
}

}  // namespace memreplay
