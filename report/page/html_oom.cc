#include "report/page/html_oom.h"

#include <algorithm>

#include "report/page/html.h"
#include "report/table/tables.h"
#include "report/words/memory_use.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

bool RunsOut(const proto::OutOfMemory& oom) { return oom.verdict() != proto::Verdict::none; }

constexpr int kMaxPinned = 20;

// Returns the table with what helps first.
std::string Help(const proto::OutOfMemory& oom) {
  Table table = HelpTable(oom);
  std::stable_partition(table.rows.begin(), table.rows.end(),
                        [](const Table::Row& row) { return row.tone != Tone::kBad; });
  return HtmlTable(table);
}

// Returns the table, each change with its colour in the chart.
std::string Serving(const proto::DeviceReport& device) {
  Table table = ServingTable(device.advice());
  int curve = device.page().others_size();
  for (Table::Row& row : table.rows) {
    row.cells[0].html = StrCat(Swatch(curve++), EscapeHtml(row.cells[0].words));
  }
  return HtmlTable(table);
}

}  // namespace

std::string OomHeadline(const proto::OutOfMemory& oom) {
  if (!RunsOut(oom)) return "";
  return StrCat(VerdictName(oom.verdict()), ": ", oom.sentence());
}

std::string OomTables(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  if (!RunsOut(oom)) return "";
  std::string html = StrCat("<div class=\"columns\"><div>", Help(oom), "</div><div>",
                            HtmlTable(UseTable(oom.use())), "</div></div>\n", Serving(device));
  if (oom.verdict() == proto::Verdict::fragmentation) {
    StrAppend(&html, HtmlTable(PinnedTable(oom, kMaxPinned)));
  }
  for (const std::string& note : oom.notes()) StrAppend(&html, Element("p class=\"note\"", note));
  return html;
}

}  // namespace memreplay
