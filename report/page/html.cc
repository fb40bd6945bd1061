#include "report/page/html.h"

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kColors = 5;  // of other-0 and so on in page.css

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

std::string Element(std::string_view tag, std::string_view text) {
  return StrCat("<", tag, ">", EscapeHtml(text), "</", tag.substr(0, tag.find(' ')), ">");
}

std::string Sentence(std::string_view text) {
  std::string sentence(text);
  if (sentence.empty()) return sentence;
  if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 32);
  if (sentence.back() != '.') sentence += '.';
  return sentence;
}

Cell TextCell(std::string_view text) {
  constexpr size_t kLongText = 60;
  return {.html = EscapeHtml(text), .is_long = text.size() > kLongText};
}

Cell NumberCell(std::string_view text) { return {.html = EscapeHtml(text), .is_number = true}; }

Cell CountCell(int64_t count) { return {.html = FormatCount(count), .is_number = true}; }

Cell SizeCell(int64_t bytes) {
  return {.html = FormatSize(bytes), .is_number = true, .title = FormatCount(bytes, "byte")};
}

Cell BarCell(int64_t part, int64_t whole) {
  const double share =
      whole <= 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return {.html = absl::StrFormat(
              "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
              "role=\"img\" aria-label=\"%.1f %%\"><rect width=\"%.2f\" height=\"8\"/></svg>",
              share, share)};
}

Cell PlaceCell(std::string_view text, int64_t position, int64_t address) {
  return {.html = StrCat("<button type=\"button\" class=\"link\" data-position=\"", position,
                         "\" data-address=\"", address, "\">", EscapeHtml(text), "</button>")};
}

std::string Swatch(int curve) {
  return StrCat("<span class=\"swatch other-", curve % kColors, "\"></span>");
}

std::string Table(std::string_view caption, const std::vector<std::string_view>& columns,
                  const std::vector<std::vector<Cell>>& rows) {
  if (rows.empty()) return "";
  std::string html = StrCat("<div class=\"scroll\" tabindex=\"0\"><table><caption>",
                            EscapeHtml(caption), "</caption>\n<thead><tr>");
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool number = i < rows[0].size() && rows[0][i].is_number;
    StrAppend(&html, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">",
              EscapeHtml(columns[i]), "</th>");
  }
  StrAppend(&html, "</tr></thead>\n<tbody>\n");
  for (const std::vector<Cell>& row : rows) {
    StrAppend(&html, "<tr>");
    for (const Cell& cell : row) {
      StrAppend(&html,
                cell.is_number ? "<td class=\"n\""
                : cell.is_long ? "<td class=\"long\""
                               : "<td",
                cell.title.empty() ? "" : StrCat(" title=\"", EscapeHtml(cell.title), "\""), ">",
                cell.html, "</td>");
    }
    StrAppend(&html, "</tr>\n");
  }
  StrAppend(&html, "</tbody></table></div>\n");
  return html;
}

}  // namespace memreplay
