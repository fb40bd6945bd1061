#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/names.h"
#include "report/words/record_faults.h"
#include "report/words/render_json.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

double Mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Returns the same kind for "it0.fwd12" and "it0.fwd3".
std::string KindOf(std::string_view phase) {
  if (phase.find(".fwd") == std::string_view::npos &&
      phase.find(".bwd") == std::string_view::npos) {
    return std::string(phase);
  }
  while (!phase.empty() && std::isdigit(static_cast<unsigned char>(phase.back())) != 0) {
    phase.remove_suffix(1);
  }
  return std::string(phase);
}

// Returns the highest phase of each kind, in order of first appearance, without those that have no
// events of their own.
std::vector<const proto::Prediction::Phase*> Rows(const proto::Prediction& prediction) {
  std::vector<const proto::Prediction::Phase*> rows;
  std::map<std::string, size_t> row_of;
  for (const proto::Prediction::Phase& phase : prediction.phases()) {
    const std::string& name = phase.name();
    if (name == "end" || (name.size() > 6 && name.substr(name.size() - 6) == ".after")) continue;
    const auto [at, is_new] = row_of.emplace(KindOf(name), rows.size());
    if (is_new) {
      rows.push_back(&phase);
    } else if (phase.peak_allocated_bytes() > rows[at->second]->peak_allocated_bytes()) {
      rows[at->second] = &phase;
    }
  }
  return rows;
}

std::string PhaseName(const std::string& phase) {
  return phase.empty() ? "before the first phase" : CleanText(phase);
}
std::string Count(uint64_t count) { return FormatCount(static_cast<int64_t>(count)); }
std::string Size(uint64_t bytes) { return FormatSize(Bytes(bytes)); }

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

std::string RenderPrediction(const proto::Report& report) {
  const proto::Prediction& p = report.prediction();
  std::string text = StrCat(p.model(), ", ", FormatCount(p.parameters()), " parameters: ");
  if (p.has_oom()) {
    const proto::Prediction::Oom& oom = p.oom();
    StrAppend(&text, "out of memory in ", oom.phase(), oom.label().empty() ? "" : ", ", oom.label(),
              "\n  requested         ", FormatSizeExactly(oom.size_bytes()), " for ", oom.name(),
              "\n  allocated then    ", FormatSizeExactly(oom.allocated_bytes()),
              "\n  reserved then     ", FormatSizeExactly(oom.reserved_bytes()), "\n");
  } else {
    StrAppend(&text, "peak in ", p.peak_phase(), "\n");
  }
  StrAppend(&text, "  peak allocated    ", FormatSizeExactly(p.peak_allocated_bytes()),
            "\n  peak reserved     ", FormatSizeExactly(p.peak_reserved_bytes()),
            "\n  process           ", FormatSize(p.peak_reserved_bytes() + p.context_bytes()),
            " in nvidia-smi: reserved plus ", FormatSize(p.context_bytes()),
            " assumed for the CUDA context (", p.context_reason(), ")\n  device            ",
            p.capacity_bytes() == 0 ? "unlimited"
                                    : StrCat(FormatSize(p.capacity_bytes()), " for the allocator"),
            ", ", SettingsName(p.conf()), ", torch ", p.torch().release(), " (", p.torch().why(),
            ")\n");

  for (const proto::Prediction::Phase& phase : p.phases()) {
    if (phase.name() != p.peak_phase()) continue;
    StrAppend(&text, "\nthe peak, in ", phase.name(), ":\n");
    for (const CategoryColumn& column : CategoryColumns({&phase.bytes_by_tag()}, false)) {
      const int64_t bytes = column.bytes[0];
      if (bytes == 0) continue;
      StrAppend(&text, absl::StrFormat("  %-38s %10.2f MiB %5.1f %%\n", column.sentence, Mib(bytes),
                                       100.0 * static_cast<double>(bytes) /
                                           static_cast<double>(phase.peak_allocated_bytes())));
    }
    break;
  }

  const std::vector<const proto::Prediction::Phase*> rows = Rows(p);
  Table table{"", {{"phase", Unit::kWords, "  %-5s"}}, true};
  std::vector<const BytesByTag*> bytes;
  for (const auto* row : rows) {
    table.Add({row->name()});
    bytes.push_back(&row->bytes_by_tag());
  }
  const auto add = [&](const std::string& heading, std::string_view layout, const auto& bytes_of) {
    table.columns.push_back({heading, Unit::kMib, layout});
    for (size_t i = 0; i < rows.size(); ++i) table.rows[i].cells.emplace_back(bytes_of(i));
  };
  const std::vector<CategoryColumn> columns = CategoryColumns(bytes, false);
  for (const CategoryColumn& column : columns) {
    add(column.heading, " %8s", [&](size_t i) { return column.bytes[i]; });
  }
  add("allocated", " %9s", [&](size_t i) { return rows[i]->peak_allocated_bytes(); });
  add("reserved", " %9s", [&](size_t i) { return rows[i]->peak_reserved_bytes(); });
  StrAppend(&text, "\npeaks by phase, in MiB (the highest of all micro-steps):\n");
  AddTable(table, &text);
  return text;
}

std::string RenderProgramCheck(const proto::ProgramCheck& check) {
  std::string text =
      StrCat(check.file(), ": ", FormatCount(static_cast<int64_t>(check.events()), "event"),
             "; at most ", FormatSizeExactly(static_cast<int64_t>(check.peak_requested())),
             " requested at once, in ", PhaseName(check.peak_phase()), ".\n\n");
  const std::map<std::string, uint64_t> kinds(check.events_by_kind().begin(),
                                              check.events_by_kind().end());
  for (const auto& [kind, count] : kinds) {
    absl::StrAppendFormat(&text, "  %-18s %s\n", kind, Count(count));
  }
  absl::StrAppendFormat(&text, "\n  %12s  %10s  %22s  %s\n", "events", "peak", "live at the end",
                        "phase");
  for (const proto::PhaseCheck& phase : check.phases()) {
    absl::StrAppendFormat(
        &text, "  %12s  %10s  %22s  %s\n", Count(phase.events()), Size(phase.peak_requested()),
        phase.leaks() == 0 ? "-" : StrCat(Count(phase.leaks()), " of ", Size(phase.leaked_bytes())),
        PhaseName(phase.phase()));
  }
  return text;
}

std::string RenderProgramCheckJson(proto::ProgramCheck check) {
  check.set_file(CleanText(check.file()));
  check.set_peak_phase(CleanText(check.peak_phase()));
  for (proto::PhaseCheck& phase : *check.mutable_phases()) {
    phase.set_phase(CleanText(phase.phase()));
  }
  return RenderJson(check, JsonLayout::kIndented);
}

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
  absl::c_stable_sort(rows, [](const auto& a, const auto& b) {
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
