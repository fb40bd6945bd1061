#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using enum Unit;

constexpr size_t kBarColumn = 4;

std::string Calls(const proto::SweepRow::DeviceCalls& calls) {
  return StrCat(FormatCount(calls.cuda_malloc()), "/", FormatCount(calls.cuda_free()), "/",
                FormatCount(calls.map()), "/", FormatCount(calls.unmap()), "/",
                FormatCount(calls.synchronize()));
}

std::vector<Cell> SweepCells(const std::string& rank, const proto::SweepRow& row,
                             const proto::SweepRow& current, size_t columns) {
  std::string name = ConfCell(row.conf(), row.memory_fraction(), row.is_current());
  if (!row.refused().empty()) {
    std::vector<Cell> cells(columns, "-");
    cells.front() = rank;
    cells.back() = StrCat(name, "  REJECTED: ", row.refused());
    return cells;
  }
  if (!row.risks().empty() && row.risks(0).rfind("HARMFUL", 0) == 0) {
    StrAppend(&name, "  (HARMFUL PAIR)");
  }
  const int64_t peak = row.peak_reserved_bytes(), change = peak - current.peak_reserved_bytes();
  return {rank,
          row.oom() ? StrCat("event ", FormatCount(row.first_oom_event())) : "no",
          peak,
          change == 0 ? ""
                      : StrCat(FormatSizeChange(change),
                               PercentChange(change, current.peak_reserved_bytes())),
          peak,
          row.reserved_minus_allocated_bytes(),
          absl::StrFormat("%.0f %%", 100 * row.fragmentation()),
          row.ooms(),
          row.alloc_retries(),
          Calls(row.calls()),
          row.device_calls(),
          FormatDuration(std::llround(1e9 * row.driver_seconds())),
          name};
}

bool SameOutcome(const proto::SweepRow& a, const proto::SweepRow& b) {
  return a.refused() == b.refused() && a.ooms() == b.ooms() &&
         a.peak_reserved_bytes() == b.peak_reserved_bytes() &&
         a.reserved_minus_allocated_bytes() == b.reserved_minus_allocated_bytes() &&
         a.alloc_retries() == b.alloc_retries() && a.device_calls() == b.device_calls();
}

}  // namespace

std::string ConfCell(const std::string& conf, double memory_fraction, bool is_current) {
  return StrCat(ConfName(conf, memory_fraction), is_current ? "  (current)" : "");
}

Table SweepTable(const proto::Sweep& sweep) {
  Table table{"",
              {{"", kLabel, "  %1s"},
               {"out of memory", kLabel, "  %1s", 0, false},
               {"peak reserved", kSize, "  %1s"},
               {"change", kLabel, ""},
               {"", kBar, ""},
               {"unused at the peak", kSize, "  %1s", 0, true, "unused"},
               {"share", kLabel, "  %1s", 0, false},
               {"out of memory", kCount, ""},
               {"retries", kCount, "  %1s"},
               {"driver calls", kLabel, "  %1s", 0, false},
               {"driver calls", kCount, ""},
               {"their time", kLabel, sweep.costs_of().empty() ? "" : "  %1s", 0, false},
               {"settings", kCode}},
              true};
  table.columns.front().leads = table.columns.back().leads = true;
  int64_t& most = table.columns[kBarColumn].whole;
  const auto add = [&](const std::string& rank, const proto::SweepRow& row) {
    most = std::max(most, row.peak_reserved_bytes());
    table.Add(SweepCells(rank, row, sweep.current(), table.columns.size()));
  };
  bool current_shown = false;
  for (int i = 0; i < sweep.rows_size() && std::ssize(table.rows) < sweep.shown(); ++i) {
    // Among settings with the same result, the simplest represents all.
    int last = i;
    while (sweep.searched() && !sweep.rows(i).is_current() && last + 1 < sweep.rows_size() &&
           !sweep.rows(last + 1).is_current() && SameOutcome(sweep.rows(i), sweep.rows(last + 1))) {
      ++last;
    }
    add(StrCat(i + 1), sweep.rows(i));
    if (last > i) {
      StrAppend(&table.rows.back().cells.back().words, "  (and ", FormatCount(last - i),
                " more with the same result)");
    }
    current_shown |= sweep.rows(i).is_current();
    i = last;
  }
  if (!current_shown) {
    int rank = 0;
    for (int i = 0; i < sweep.rows_size(); ++i) {
      if (sweep.rows(i).is_current()) rank = i + 1;
    }
    add(rank == 0 ? "-" : StrCat(rank), sweep.current());
  }
  return table;
}

}  // namespace memreplay
