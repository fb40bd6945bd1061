#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The parts of TableColumn::text.
struct TextParts {
  std::string_view before, after;
  size_t width = 0;
  bool is_flush_left = false;
};

TextParts TextPartsOf(std::string_view text) {
  const size_t begin = text.find('%'), end = text.find('s', begin);
  const std::string_view width = text.substr(begin + 1, end - begin - 1);
  TextParts parts{text.substr(0, begin), text.substr(end + 1)};
  parts.is_flush_left = width.starts_with('-');
  int least = 0;
  if (absl::SimpleAtoi(ToAbsl(width), &least)) parts.width = static_cast<size_t>(std::abs(least));
  return parts;
}

std::string TerminalText(const TableColumn& column, const Cell& cell) {
  if (!cell.number) return cell.words;
  if (column.unit == Unit::kExactSize) return FormatSizeExactly(*cell.number);
  if (column.unit == Unit::kMib) {
    return absl::StrFormat("%.1f", static_cast<double>(*cell.number) / (1 << 20));
  }
  return CellText(column, cell);
}

}  // namespace

void AddTable(const Table& table, Text* out) {
  if (table.rows.empty()) return;
  std::vector<std::string> lines(table.rows.size());
  std::string headings;
  bool is_in_mib = false;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const TableColumn& column = table.columns[c];
    is_in_mib |= column.unit == Unit::kMib;
    if (column.text.empty()) continue;
    TextParts parts = TextPartsOf(column.text);
    std::vector<std::string> texts;
    for (const Table::Row& row : table.rows) {
      texts.push_back(c < row.cells.size() ? TerminalText(column, row.cells[c]) : "");
    }
    const std::string heading(column.narrow.empty() ? column.heading : column.narrow);
    if (parts.width > 0) {
      if (table.has_headings) parts.width = std::max(parts.width, heading.size());
      for (const std::string& text : texts) parts.width = std::max(parts.width, text.size());
    }
    const auto append = [&](const std::string& text, bool is_plural, std::string* line) {
      if (text.empty() && parts.width == 0) return;
      const std::string space(std::max(parts.width, text.size()) - text.size(), ' ');
      StrAppend(line, parts.before, parts.is_flush_left ? "" : space, text,
                parts.is_flush_left ? space : "", parts.after, is_plural ? "s" : "");
    };
    append(heading, false, &headings);
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool is_noun = column.unit == Unit::kCount && !parts.after.empty();
      append(texts[i], is_noun && table.rows[i].cells[c].number != 1, &lines[i]);
    }
  }
  const auto add = [&](std::string_view line) {
    StrAppend(&out->text, line.substr(0, line.find_last_not_of(' ') + 1), "\n");
  };
  if (!table.title.empty()) {
    StrAppend(&out->text, "\n  ", table.title, is_in_mib ? ", in MiB" : "", "\n");
  }
  if (table.has_headings) add(headings);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Table::Row& row = table.rows[i];
    if (row.tone != Tone::kPlain) out->toned.push_back({out->text.size(), row.tone});
    add(lines[i]);
    for (const std::string& line : row.lines) StrAppend(&out->text, "    ", line, "\n");
  }
  if (!table.note.empty()) {
    add(StrCat(std::string(static_cast<size_t>(table.note_indent), ' '), table.note));
  }
}

void AddTable(const Table& table, std::string* out) {
  Text text;
  AddTable(table, &text);
  StrAppend(out, text.text);
}

}  // namespace memreplay
