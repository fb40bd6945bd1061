#include "report/page/html_contents.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_format.h"
#include "report/page/html.h"
#include "report/page/html_sections.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

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

}  // namespace

void SortWorstFirst(std::vector<PageDevice>* devices) {
  const auto badness = [](const PageDevice& device) {
    return std::pair(device.report->ooms() > 0, device.report->peak_reserved_bytes());
  };
  std::stable_sort(devices->begin(), devices->end(), [&](const PageDevice& a, const PageDevice& b) {
    return badness(a) > badness(b);
  });
}

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
               Diagnosis(*device.report)});
  }
  std::string html;
  if (job != nullptr) {
    StrAppend(&html,
              Element("p class=\"answer\"",
                      StrCat(FormatCount(job->rows_size(), "device"), " of ",
                             FormatCount(job->files(), "file"), "; ",
                             outliers.empty() ? "no rank stands out" : outliers,
                             "; peaks differ by ", FormatSize(job->spread_bytes()), ".")),
              "\n");
  }
  return StrCat(html, HtmlTable(table));
}

}  // namespace memreplay
