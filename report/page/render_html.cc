#include "report/page/render_html.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/page/html.h"
#include "report/page/html_sections.h"
#include "report/page/parts.h"
#include "report/words/answer.h"
#include "report/words/holding.h"
#include "report/words/render_json.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/formats/format_names.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string Head(std::string_view title) {
  // Only the three parts of this page may run or style: a name that slipped through the escaping
  // could do nothing, and nothing is fetched.
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
      Element("title", title, " - memreplay"), "\n<style>", kStyle, "</style>\n</head>\n");
}

std::string BaseName(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return std::string(slash == path.npos || slash + 1 == path.size() ? path
                                                                    : path.substr(slash + 1));
}

// Returns what happened, who holds the memory and what is wrong, the most important first.
std::string Answers(const proto::DeviceReport& device) {
  std::vector<std::string> faults(device.faults().begin(), device.faults().end());
  const std::string verdict = OomHeadline(device.oom());
  std::erase(faults, VerdictFault(device));
  std::string html;
  for (const std::string& fault : faults) {
    StrAppend(&html, Element("p class=\"fault\"", Sentence(fault)), "\n");
  }
  const proto::Diagnosis said = Diagnosis(device);
  const bool says_verdict = DiagnosisText(said).find(device.oom().sentence()) != std::string::npos;
  if (!verdict.empty() && !says_verdict) {
    StrAppend(&html, Element("p class=\"answer bad\"", Sentence(verdict)), "\n");
  }
  const bool is_bad = !verdict.empty() && says_verdict;
  StrAppend(&html, Element(is_bad ? "p class=\"answer bad\"" : "p class=\"answer\"", said.what()),
            "\n");
  if (!said.why().empty()) StrAppend(&html, Element("p class=\"why\"", said.why()), "\n");
  if (!said.do_().empty()) StrAppend(&html, Element("p class=\"do\"", said.do_()), "\n");
  if (device.has_sweep()) {
    StrAppend(
        &html,
        Element("p class=\"answer\"", Sentence(SweepSentence(device.sweep(), device.unseen()))),
        "\n");
  }
  if (const std::string warning = ControlWarning(device.control()); !warning.empty()) {
    StrAppend(&html, Element("p class=\"fault\"", "Warning: ", warning, "."), "\n");
  }
  for (const Line& line : UnseenLines(device.unseen())) {
    StrAppend(&html, Element("p class=\"fault\"", line.label, ": ", line.text), "\n");
  }
  return html;
}

// Returns the section of a device. `index` counts all devices on the page. `name` is "" for the
// only one.
std::string Device(const proto::DeviceReport& device, size_t index, std::string_view name) {
  return StrCat("<section class=\"device\" data-index=\"", index, "\">\n",
                name.empty() ? "" : StrCat(Element("h2", name), "\n"), Answers(device),
                KeyFigures(device), "<div class=\"workbench\"></div>\n", OutOfMemory(device),
                ComparisonTable(device), SettingsSearch(device), "<div class=\"more\"></div>\n",
                "<div class=\"tables\">", Tables(device), "</div></section>\n");
}

// --- The beginning of a page of several devices or ranks, with a row for each, the worst first.
// ---

// A device of a page.
struct PageDevice {
  const proto::DeviceReport* report;  // not null
  size_t index;                       // among the devices of all inputs, in their order
  std::string name;                   // "rank0.pickle, device 0"
};

constexpr int kWidth = 240;
constexpr int kHeight = 28;

// Appends the steps of a curve as an area, `most` bytes high; its points are at positions of a run
// of `positions`.
void AppendArea(const google::protobuf::RepeatedField<int64_t>& at,
                const google::protobuf::RepeatedField<int64_t>& bytes, int64_t positions,
                int64_t most, std::string_view name, std::string* svg) {
  StrAppend(svg, "<path class=\"area ", name, "\" d=\"M0,", kHeight);
  std::vector<int64_t> highest(kWidth + 1, -1);  // of each pixel
  for (int i = 0; i < at.size(); ++i) {
    const auto x = static_cast<size_t>(kWidth * at[i] / std::max<int64_t>(positions, 1));
    int64_t& value = highest[std::min<size_t>(x, kWidth)];
    value = std::max(value, bytes[i]);
  }
  int64_t value = 0;
  for (int x = 0; x <= kWidth; ++x) {
    if (highest[static_cast<size_t>(x)] >= 0) value = highest[static_cast<size_t>(x)];
    const double share = static_cast<double>(value) / static_cast<double>(most);
    absl::StrAppendFormat(svg, "L%d,%.1f", x, kHeight * (1 - share));
  }
  StrAppend(svg, "V", kHeight, "Z\"/>");
}

std::string CurveHtml(const proto::DeviceReport& device, int64_t most) {
  const proto::Page::Curve& curve = device.page().curve();
  std::string svg = StrCat("<svg class=\"spark\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                           "\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over "
                           "the run\">");
  AppendArea(curve.position(), curve.reserved_bytes(), device.page().positions(), most, "reserved",
             &svg);
  AppendArea(curve.position(), curve.active_bytes(), device.page().positions(), most, "active",
             &svg);
  return StrCat(svg, "</svg>");
}

// Puts devices that ran out of memory first, then those with the highest peaks. Stable.
void SortWorstFirst(std::vector<PageDevice>* devices) {
  const auto badness = [](const PageDevice& device) {
    return std::pair(device.report->ooms() > 0, device.report->peak_reserved_bytes());
  };
  absl::c_stable_sort(
      *devices, [&](const PageDevice& a, const PageDevice& b) { return badness(a) > badness(b); });
}

// Returns a row for each device: its memory over the run on one scale, peaks, diagnosis, and a link
// to its part of the page. If `job` is not null, it has the same devices as ranks, by index.
std::string Contents(absl::Span<const PageDevice> devices, const proto::Job* job) {
  int64_t most = 1;
  for (const PageDevice& device : devices) {
    most = std::max(
        {most, device.report->peak_reserved_bytes(), device.report->peak_requested_bytes()});
  }
  std::string outliers;
  Table table{"every device, the worst first, on one scale",
              {{"device"},
               {"memory over the run"},
               {"peak reserved", Unit::kSize},
               {"peak requested", Unit::kSize},
               {"out of memory", Unit::kCount},
               {"what holds it"}}};
  for (const PageDevice& device : devices) {
    std::string marks;
    if (job != nullptr && std::cmp_equal(device.index, job->worst_row())) marks = "worst";
    if (job != nullptr && job->rows(static_cast<int>(device.index)).is_outlier()) {
      StrAppend(&marks, marks.empty() ? "" : ", ", "outlier");
      StrAppend(&outliers, outliers.empty() ? "outlier: " : ", ", device.name);
    }
    Cell name(device.name), curve("");
    name.html = StrCat("<button type=\"button\" class=\"link\" data-section=\"", device.index,
                       "\">", EscapeHtml(device.name), "</button>",
                       marks.empty() ? "" : StrCat(" ", Element("b class=\"bad\"", marks)));
    curve.html = CurveHtml(*device.report, most);
    table.Add({std::move(name), std::move(curve), device.report->peak_reserved_bytes(),
               device.report->peak_requested_bytes(), device.report->ooms(),
               DiagnosisText(Diagnosis(*device.report))});
  }
  std::string html;
  if (job != nullptr) {
    StrAppend(&html,
              Element("p class=\"answer\"", FormatCount(job->rows_size(), "device"), " of ",
                      FormatCount(job->files(), "file"), "; ",
                      outliers.empty() ? "no rank stands out" : outliers, "; peaks differ by ",
                      FormatSize(job->spread_bytes()), "."),
              "\n");
  }
  return StrCat(html, HtmlTable(table));
}

// Removes what the run's columns show better.
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

std::string RenderHtml(absl::Span<const PageInput> inputs, const proto::Job* job) {
  const proto::Report& first = inputs[0].report;
  std::vector<PageDevice> devices;
  for (const PageInput& input : inputs) {
    for (const proto::DeviceReport& device : input.report.devices()) {
      const std::string number = StrCat("device ", device.device());
      devices.push_back(
          {&device, devices.size(),
           inputs.size() > 1 ? StrCat(BaseName(input.report.file()), ", ", number) : number});
    }
  }
  const bool several = devices.size() > 1;
  SortWorstFirst(&devices);
  const std::string title =
      inputs.size() > 1 ? StrCat(BaseName(first.file()), " and ", inputs.size() - 1, " more")
                        : BaseName(first.file());
  std::string html = StrCat(Head(title), "<body>\n<header>\n", Element("h1", title), "\n",
                            several ? Contents(devices, job) : "",
                            "</header>\n<noscript><p class=\"note\">The charts need JavaScript; "
                            "everything else works without it.</p></noscript>\n<main>\n");
  for (const PageDevice& device : devices) {
    StrAppend(&html, Device(*device.report, device.index, several ? device.name : ""));
  }
  StrAppend(&html, "</main>\n<footer>\n<p class=\"note\">",
            EscapeHtml(StrCat(
                "memreplay ", first.tool_version(), ", ", FormatTitle(first.format()),
                "; docs/metrics.md defines the figures, which are those of memreplay replay.")),
            "</p>\n<details><summary>Licence of d3, which draws the charts</summary>",
            Element("pre", kChartLibraryLicence), "</details>\n</footer>\n");
  proto::Report merged = WithoutDrawn(first);
  for (const PageInput& input : inputs.subspan(1)) {
    const proto::Report small = WithoutDrawn(input.report);
    merged.mutable_devices()->MergeFrom(small.devices());
  }
  StrAppend(&html, "<script type=\"application/json\" id=\"report\">",
            EscapeJsonForScript(RenderJson(merged, JsonLayout::kOneLine)), "</script>\n");
  int index = 0;
  for (const PageInput& input : inputs) {
    for (const RunData& run : input.runs) {
      StrAppend(&html, "<script type=\"application/json\" id=\"run-", index, "-head\">", run.head,
                "</script>\n<script type=\"text/plain\" id=\"run-", index, "\">", run.columns,
                "</script>\n");
      ++index;
    }
  }
  StrAppend(&html, "<script>", kChartLibrary, "</script>\n<script>", kScript,
            "</script>\n</body>\n</html>\n");
  return html;
}

}  // namespace memreplay
