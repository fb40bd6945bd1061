#include <algorithm>

#include "report/table/tables.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

Table FailureTable(const proto::DeviceReport& device, int most) {
  Table table{"requests that raise an exception",
              {{"", Unit::kWords, "  %-18s"}, {"message", Unit::kWords, " %s"}}};
  for (const proto::RequestFailure& failure : device.failures()) {
    if (std::ssize(table.rows) == most) {
      table.note = StrCat("and ", FormatCount(device.failures_size() - most), " more");
      break;
    }
    table.Add({StrCat("request ", FormatCount(failure.request())), failure.message()});
  }
  return table;
}

Table DiagnosticsTable(const proto::DeviceReport& device) {
  Table table{"diagnostics",
              {{"severity"},
               {"times", Unit::kCount, ", %s time"},
               {"what", Unit::kWords, ": %s"},
               {"first at", Unit::kWords, "; first at %s"}}};
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    std::string where;
    for (const auto& place : diagnostic.places()) {
      StrAppend(&where, where.empty() ? "" : ", ", FormatCount(place.position()),
                place.detail().empty() ? "" : StrCat(" [", place.detail(), "]"));
    }
    table.Add(
        {SeverityName(diagnostic.severity()), diagnostic.count(), diagnostic.sentence(), where});
  }
  return table;
}

}  // namespace memreplay
