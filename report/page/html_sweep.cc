#include "report/page/html_sweep.h"

#include "report/page/html.h"
#include "report/table/tables.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
std::string SettingsSearch(const proto::DeviceReport& device) {
  if (!device.has_sweep() || device.sweep().rows().empty()) return "";
  const proto::Sweep& sweep = device.sweep();
  std::string html = StrCat("<section class=\"search\">", Element("h3", "Settings searched"), "\n");
  Table table = SweepTable(sweep);
  table.title = StrCat("the best of ", FormatCount(sweep.rows_size()));
  StrAppend(&html, HtmlTable(table));
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
