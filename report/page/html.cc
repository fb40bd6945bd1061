#include "report/page/html.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kColors = 5;        // of other-0 and so on in page.css
constexpr size_t kLongText = 60;  // a sentence, whose column does not become narrow

bool IsNumber(const TableColumn& column) {
  return column.unit != Unit::kWords && column.unit != Unit::kCode && column.unit != Unit::kBar;
}

// Returns a bar, drawn without style attributes, which the page's content security policy forbids.
std::string Bar(int64_t part, int64_t whole) {
  const double share =
      whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return absl::StrFormat(
      "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
      "role=\"img\" aria-label=\"%.1f %%\"><rect width=\"%.2f\" height=\"8\"/></svg>",
      share, share);
}

// Returns what is between the tags of a cell.
std::string CellHtml(const TableColumn& column, const Cell& cell) {
  if (!cell.html.empty()) return cell.html;
  if (column.unit == Unit::kBar) return cell.number ? Bar(*cell.number, column.whole) : "";
  const std::string text = CellText(column, cell);
  if (column.unit == Unit::kCode) {
    const size_t end = std::min(text.find("  "), text.size());  // a remark follows
    return StrCat(Element("code", text.substr(0, end)), EscapeHtml(text.substr(end)));
  }
  if (!cell.position) return EscapeHtml(text);
  return StrCat("<button type=\"button\" class=\"link\" data-position=\"", *cell.position,
                "\" data-address=\"", cell.address, "\">", EscapeHtml(text), "</button>");
}

std::string CellElement(const TableColumn& column, const Cell& cell, const std::string& html) {
  const bool is_size =
      column.unit == Unit::kSize || column.unit == Unit::kExactSize || column.unit == Unit::kMib;
  const bool is_long =
      column.unit == Unit::kWords && !cell.position && cell.words.size() > kLongText;
  return StrCat(
      "<td",
      IsNumber(column) ? " class=\"n\""
      : is_long        ? " class=\"long\""
                       : "",
      is_size && cell.number ? StrCat(" title=\"", FormatCount(*cell.number, "byte"), "\"") : "",
      ">", html, "</td>");
}

bool IsEmpty(const Table& table, size_t column) {
  return absl::c_all_of(table.rows, [&](const Table::Row& row) {
    if (column >= row.cells.size()) return true;
    const Cell& cell = row.cells[column];
    return !cell.number && cell.words.empty() && cell.html.empty();
  });
}

// Returns the places of the columns that a page shows, those that lead first.
std::vector<size_t> PageOrder(const Table& table) {
  std::vector<size_t> order;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].is_on_page && !IsEmpty(table, i)) order.push_back(i);
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return table.columns[i].leads; });
  return order;
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += c;
    }
  }
  return html;
}

std::string Capitalized(std::string_view text) {
  std::string sentence(text);
  if (!sentence.empty()) sentence[0] = absl::ascii_toupper(sentence[0]);
  return sentence;
}

std::string Sentence(std::string_view text) {
  std::string sentence = Capitalized(text);
  if (!sentence.empty() && sentence.back() != '.') sentence += '.';
  return sentence;
}

std::string Swatch(int curve) {
  return StrCat("<span class=\"swatch other-", curve % kColors, "\"></span>");
}

std::string HtmlTable(const Table& table) {
  if (table.rows.empty()) return "";
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>";
  if (!table.title.empty()) StrAppend(&html, Element("caption", Capitalized(table.title)));
  StrAppend(&html, "\n<thead><tr>");
  const std::vector<size_t> order = PageOrder(table);
  for (const size_t i : order) {
    StrAppend(&html, Element(IsNumber(table.columns[i]) ? "th scope=\"col\" class=\"n\""
                                                        : "th scope=\"col\"",
                             table.columns[i].heading));
  }
  StrAppend(&html, "</tr></thead>\n<tbody>\n");
  for (const Table::Row& row : table.rows) {
    StrAppend(&html, "<tr>");
    for (const size_t i : order) {
      if (i >= row.cells.size()) continue;
      std::string cell = CellHtml(table.columns[i], row.cells[i]);
      if (i == order[0] && !row.lines.empty()) {
        cell = StrCat("<details><summary>", cell, "</summary>",
                      Element("pre class=\"paste\"", absl::StrJoin(row.lines, "\n")), "</details>");
      }
      StrAppend(&html, CellElement(table.columns[i], row.cells[i], cell));
    }
    StrAppend(&html, "</tr>\n");
  }
  StrAppend(&html, "</tbody></table></div>\n");
  if (!table.note.empty()) StrAppend(&html, Element("p class=\"note\"", table.note), "\n");
  return html;
}

std::string Section(std::string_view title, std::string_view html) {
  if (html.empty()) return "";
  return StrCat("<section>", Element("h3", title), "\n", html, "</section>\n");
}

std::string Section(Table table) {
  const std::string title = Capitalized(table.title);
  table.title.clear();
  return Section(title, HtmlTable(table));
}

}  // namespace memreplay
