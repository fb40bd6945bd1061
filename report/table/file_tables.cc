#include <algorithm>

#include "report/table/tables.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

Table FailureTable(const proto::DeviceReport& device, int most) {
  Table table{.title = "requests that raise an exception",
              .columns = {{.width = -18}, {.heading = "message", .before = " "}}};
  for (const proto::RequestFailure& failure : device.failures()) {
    if (std::ssize(table.rows) == most) {
      table.note = StrCat("and ", FormatCount(device.failures_size() - most), " more");
      break;
    }
    table.rows.push_back({{StrCat("request ", FormatCount(failure.request())), failure.message()}});
  }
  return table;
}

Table DiagnosticsTable(const proto::DeviceReport& device) {
  Table table{
      .title = "diagnostics",
      .columns = {{.heading = "severity"},
                  {.heading = "times", .unit = Unit::kCount, .before = ", ", .noun = "time"},
                  {.heading = "what", .before = ": "},
                  {.heading = "first at", .before = "; first at "}}};
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    std::string where;
    for (const auto& place : diagnostic.places()) {
      StrAppend(&where, where.empty() ? "" : ", ", FormatCount(place.position()),
                place.detail().empty() ? "" : StrCat(" [", place.detail(), "]"));
    }
    table.rows.push_back(
        {{SeverityName(diagnostic.severity()), diagnostic.count(), diagnostic.sentence(), where}});
  }
  return table;
}

}  // namespace memreplay
