#include "report/text/render_table.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

bool IsOnTerminal(const TableColumn& column) {
  return (column.medium == Medium::kBoth || column.medium == Medium::kTerminal) &&
         column.unit != Unit::kBar;
}

std::string TerminalText(const TableColumn& column, const Cell& cell) {
  if (!cell.number) return cell.words;
  if (column.unit == Unit::kExactSize) return FormatSizeExactly(*cell.number);
  if (column.unit == Unit::kMib) {
    return absl::StrFormat("%.1f", static_cast<double>(*cell.number) / (1 << 20));
  }
  if (column.unit == Unit::kCount && !column.noun.empty()) {
    return FormatCount(*cell.number, column.noun);
  }
  return CellText(column, cell);
}

// Returns a line; `texts` are the cells, or the headings.
std::string TableLine(const Table& table, const std::vector<std::string>& texts,
                      const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < texts.size(); ++i) {
    const TableColumn& column = table.columns[i];
    if (!IsOnTerminal(column) || (column.width == 0 && texts[i].empty())) continue;
    const std::string space(std::max(widths[i], texts[i].size()) - texts[i].size(), ' ');
    StrAppend(&line, column.before, column.width > 0 ? space : "", texts[i],
              column.width < 0 ? space : "", column.after);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void AddTable(const Table& table, Text* out) {
  if (table.rows.empty()) return;
  std::vector<std::vector<std::string>> lines;
  if (table.has_headings) {
    lines.emplace_back();
    for (const TableColumn& column : table.columns) {
      lines[0].push_back(column.narrow.empty() ? column.heading : std::string(column.narrow));
    }
  }
  for (const Table::Row& row : table.rows) {
    std::vector<std::string>& texts = lines.emplace_back();
    for (size_t i = 0; i < row.cells.size(); ++i) {
      texts.push_back(TerminalText(table.columns[i], row.cells[i]));
    }
  }
  std::vector<size_t> widths;
  for (const TableColumn& column : table.columns) {
    widths.push_back(static_cast<size_t>(std::abs(column.width)));
  }
  for (const auto& texts : lines) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (widths[i] > 0) widths[i] = std::max(widths[i], texts[i].size());
    }
  }
  const bool is_in_mib =
      std::any_of(table.columns.begin(), table.columns.end(),
                  [](const TableColumn& column) { return column.unit == Unit::kMib; });
  if (!table.title.empty()) {
    StrAppend(&out->text, "\n  ", table.title, is_in_mib ? ", in MiB" : "", "\n");
  }
  auto texts = lines.begin();
  if (table.has_headings) StrAppend(&out->text, TableLine(table, *texts++, widths), "\n");
  for (const Table::Row& row : table.rows) {
    if (row.tone != Tone::kPlain) out->toned.push_back({out->text.size(), row.tone});
    StrAppend(&out->text, TableLine(table, *texts++, widths), "\n");
    for (const std::string& line : row.lines) StrAppend(&out->text, "    ", line, "\n");
  }
  if (!table.note.empty()) {
    StrAppend(&out->text, std::string(static_cast<size_t>(table.note_indent), ' '), table.note,
              "\n");
  }
}

void AddTable(const Table& table, std::string* out) {
  Text text;
  AddTable(table, &text);
  StrAppend(out, text.text);
}

}  // namespace memreplay
