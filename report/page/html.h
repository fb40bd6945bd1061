// Pieces of HTML. What is called `html` is markup already; what is called `text`
// gets escaped.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_H_
#define MEMREPLAY_REPORT_PAGE_HTML_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Fit for element content and quoted attributes.
std::string EscapeHtml(std::string_view text);

// "<tag>text</tag>"; `tag` may have attributes ("p class=\"note\"").
std::string Element(std::string_view tag, std::string_view text);

// "Peak reserved 2 GiB." of "peak reserved 2 GiB".
std::string Sentence(std::string_view text);

// A table cell.
struct Cell {
  std::string html;
  bool is_number = false;  // right-aligned
  std::string title = {};  // shown by the browser on hover; text
  bool is_long = false;    // a sentence: its column does not become narrow
};
Cell TextCell(std::string_view text);
Cell NumberCell(std::string_view text);
Cell CountCell(int64_t count);
// "6.73 GiB"; the exact number of bytes is its title.
Cell SizeCell(int64_t bytes);
// A bar for `part` of `whole`, drawn without style attributes, which the page's
// content security policy forbids.
Cell BarCell(int64_t part, int64_t whole);

// Leads into the charts: to a position, and there to the block at `address` (0: none).
Cell PlaceCell(std::string_view text, int64_t position, int64_t address);

// A table that scrolls by itself where it is wider than the screen. Numeric
// columns are told by the first row. Empty without rows.
std::string Table(std::string_view caption, const std::vector<std::string_view>& columns,
                  const std::vector<std::vector<Cell>>& rows);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_H_
