#include "report/page/html_job.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "report/page/html.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kWidth = 240;
constexpr int kHeight = 28;

// The steps of a curve as an area, `most` bytes high; its points are at positions of
// a run of `positions`.
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

Cell CurveCell(const proto::DeviceReport& device, int64_t most) {
  const proto::Page::Curve& curve = device.page().curve();
  std::string svg = StrCat("<svg class=\"spark\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                           "\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"memory over "
                           "the run\">");
  AppendArea(curve.position(), curve.reserved_bytes(), device.page().positions(), most, "reserved",
             &svg);
  AppendArea(curve.position(), curve.active_bytes(), device.page().positions(), most, "active",
             &svg);
  return {.html = StrCat(svg, "</svg>")};
}

}  // namespace

std::string JobTable(const proto::Job& job, absl::Span<const proto::DeviceReport* const> devices) {
  int64_t most = 1;
  for (const proto::Job::Row& row : job.rows()) {
    most = std::max({most, row.reserved_bytes(), row.requested_bytes()});
  }
  std::vector<std::vector<Cell>> rows;
  for (int i = 0; i < job.rows_size(); ++i) {
    const proto::Job::Row& row = job.rows(i);
    const proto::DeviceReport& device = *devices[static_cast<size_t>(i)];
    std::string marks;
    if (i == job.worst_row()) marks = "worst";
    if (i == job.odd_row()) StrAppend(&marks, marks.empty() ? "" : ", ", "outlier");
    rows.push_back(
        {{.html = StrCat("<button type=\"button\" class=\"link\" data-section=\"", i, "\">",
                         EscapeHtml(StrCat(row.file(), ", device ", row.device())), "</button>")},
         CurveCell(device, most),
         SizeCell(row.reserved_bytes()),
         SizeCell(row.requested_bytes()),
         CountCell(row.events()),
         CountCell(row.ooms()),
         {.html = marks.empty() ? "" : Element("b class=\"bad\"", marks)}});
  }
  const std::string odd = job.odd_row() < 0 ? "no rank stands out"
                                            : StrCat("outlier: ", job.rows(job.odd_row()).file(),
                                                     ", device ", job.rows(job.odd_row()).device());
  return StrCat(Element("p class=\"answer\"",
                        StrCat(FormatCount(job.rows_size(), "device"), " of ",
                               FormatCount(job.files(), "file"), "; ", odd, "; peaks differ by ",
                               FormatSize(job.spread_bytes()), ".")),
                "\n",
                Table("Every rank, on one scale",
                      {"rank", "memory over the run", "peak reserved", "peak requested", "events",
                       "out of memory", ""},
                      rows));
}

}  // namespace memreplay
