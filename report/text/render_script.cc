#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/record_faults.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxRefusal = 160;  // bytes

std::string ScriptProgram(const proto::ScriptReport& report) {
  return CleanText(absl::StrJoin(report.program(), " "));
}

std::string ScriptCaseName(const proto::ScriptCase& found) {
  return StrCat(CleanText(found.card()),
                found.conf().empty() ? "" : StrCat(" under ", CleanText(found.conf())));
}

std::string ScriptAnswer(const proto::ScriptRow& row) {
  if (row.fits()) return "fits";
  if (row.ooms() == 0) return StrCat("NOT ENOUGH: ", CleanText(row.refusal(), kMaxRefusal));
  const std::string line = LineOf(row.error_place(), row.error_function());
  return StrCat("OUT OF MEMORY", line.empty() ? "" : StrCat(" at ", line),
                row.error().empty() ? ", and the script continued" : "");
}

Table ScriptTable(const std::string& key) {
  return {"",
          {{key, Unit::kLabel, "  %14s"},
           {"peak reserved", Unit::kSize, "  %13s"},
           {"peak allocated", Unit::kSize, "  %14s"},
           {"to spare", Unit::kSize, "  %10s"},
           {"retries", Unit::kLabel, "  %7s"},
           {"ran", Unit::kLabel, "  %7s"},
           {"answer"},
           {}},
          true};
}

void AddScriptRow(const proto::ScriptRow& row, const std::string& where, Table* table) {
  table->Add({FormatValue(row.value()), row.peak_reserved(), row.peak_allocated(),
              row.fits() ? Cell(row.spare()) : "-", StrCat(row.retries()),
              row.cached() ? "cached" : absl::StrFormat("%.1f s", row.seconds()), ScriptAnswer(row),
              where});
}

std::string LargestFound(const std::string& key, const proto::ScriptCase& found) {
  const std::string name = CleanText(key);
  if (!found.unfinished()) {
    return found.largest() == 0
               ? StrCat("no value of ", name, " fits.")
               : StrCat("the largest ", name, " that fits is ", FormatValue(found.largest()), ".");
  }
  std::vector<std::string> bounds;
  if (found.largest() > 0) bounds.push_back(StrCat("at least ", FormatValue(found.largest())));
  if (found.below() > 0) bounds.push_back(StrCat("less than ", FormatValue(found.below())));
  if (bounds.empty()) return StrCat("nothing is known of ", name, " yet.");
  return StrCat("the largest ", name, " that fits is ", absl::StrJoin(bounds, " and "), ".");
}

// Says that the rows which fit end too early, if one of them does.
std::string LateState(const proto::ScriptCase& found) {
  int64_t late = 0;
  for (const proto::ScriptRow& row : found.rows()) {
    if (row.fits()) late = std::max(late, row.late_state());
  }
  const std::string text = LateStateText(late);
  return text.empty() ? "" : StrCat("NOT THE WHOLE NEED: ", text, "\n");
}

std::string ScriptRuns(const proto::ScriptReport& report) {
  return StrCat(
      report.stopped_by().empty() ? ""
                                  : StrCat("  Interrupted by ", CleanText(report.stopped_by()),
                                           ": this is what the runs that had ended say.\n"),
      "  ", FormatCount(report.runs(), "run"), ", ", FormatCount(report.from_cache(), "result"),
      " from the cache, ", absl::StrFormat("%.1f s", report.seconds()), ".\n");
}

}  // namespace

std::string RenderScriptFit(const proto::ScriptReport& report) {
  std::string text = StrCat(ScriptProgram(report), "\n");
  for (const proto::ScriptCase& found : report.cases()) {
    StrAppend(&text, ScriptCaseName(found), ": ", LargestFound(report.key(), found), "\n",
              LateState(found));
    Table table = ScriptTable(report.key());
    for (const proto::ScriptRow& row : found.rows()) AddScriptRow(row, "", &table);
    AddTable(table, &text);
    StrAppend(&text, "\n");
  }
  return StrCat(text, ScriptRuns(report));
}

std::string RenderScriptSweep(const proto::ScriptReport& report) {
  std::vector<std::pair<const proto::ScriptRow*, const proto::ScriptCase*>> rows;
  for (const proto::ScriptCase& found : report.cases()) {
    for (const proto::ScriptRow& row : found.rows()) rows.emplace_back(&row, &found);
  }
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) {
    if (a.first->fits() != b.first->fits()) return a.first->fits();
    return a.first->fits() && a.first->peak_reserved() < b.first->peak_reserved();
  });
  std::string text = StrCat(ScriptProgram(report), "\n");
  for (const proto::ScriptCase& found : report.cases()) text += LateState(found);
  Table table = ScriptTable(report.key());
  for (const auto& [row, found] : rows) AddScriptRow(*row, ScriptCaseName(*found), &table);
  AddTable(table, &text);
  return StrCat(text, "\n", ScriptRuns(report));
}

}  // namespace memreplay
