#include "report/page/html_sweep.h"

#include <algorithm>
#include <vector>

#include "report/page/html.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "report/words/sweep_words.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::vector<Cell> RankCells(int rank, const proto::SweepRow& row, int64_t current, int64_t most) {
  const int64_t change = row.peak_reserved_bytes() - current;
  const std::string name =
      StrCat(ConfName(row.conf(), row.memory_fraction()), row.is_current() ? "  (current)" : "");
  return {CountCell(rank),
          {.html = Element("code", name)},
          SizeCell(row.peak_reserved_bytes()),
          NumberCell(
              change == 0 ? "" : StrCat(FormatSizeChange(change), PercentChange(change, current))),
          BarCell(row.peak_reserved_bytes(), most),
          SizeCell(row.reserved_minus_allocated_bytes()),
          CountCell(row.ooms()),
          CountCell(row.alloc_retries()),
          CountCell(row.device_calls())};
}

}  // namespace

std::string SettingsSearch(const proto::DeviceReport& device) {
  if (!device.has_sweep() || device.sweep().rows().empty()) return "";
  const proto::Sweep& sweep = device.sweep();
  std::string html = StrCat("<section class=\"search\">", Element("h3", "Settings searched"), "\n");
  const int64_t current = sweep.current().peak_reserved_bytes();
  int64_t most = current;
  std::vector<int> shown;
  for (int i = 0; i < sweep.rows_size(); ++i) {
    if (!sweep.rows(i).refused().empty()) continue;
    if (i < sweep.shown() || sweep.rows(i).is_current()) {
      shown.push_back(i);
      most = std::max(most, sweep.rows(i).peak_reserved_bytes());
    }
  }
  std::vector<std::vector<Cell>> rows;
  for (const int i : shown) rows.push_back(RankCells(i + 1, sweep.rows(i), current, most));
  StrAppend(&html, Table(StrCat("The best of ", FormatCount(sweep.rows_size())),
                         {"", "settings", "peak reserved", "change", "", "unused at the peak",
                          "out of memory", "retries", "driver calls"},
                         rows));
  for (const auto& suggestion : sweep.suggestions()) {
    std::string lines;
    for (const std::string& line : suggestion.lines()) StrAppend(&lines, line, "\n");
    StrAppend(&html, Element("pre class=\"paste\"", lines),
              Element("p class=\"note\"", StrCat("cost: ", suggestion.cost())), "\n");
    for (const std::string& risk : suggestion.risks()) {
      StrAppend(&html, Element("p class=\"note\"", StrCat("risk: ", risk)), "\n");
    }
  }
  return StrCat(html, "</section>\n");
}

}  // namespace memreplay
