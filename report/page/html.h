// Builds pieces of HTML. Parameters called `html` are already markup; those called `text` get
// escaped.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_H_
#define MEMREPLAY_REPORT_PAGE_HTML_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// Escapes text for element content and quoted attributes.
std::string EscapeHtml(std::string_view text);

// Returns "<tag>text</tag>"; `tag` may have attributes ("p class=\"note\"").
std::string Element(std::string_view tag, std::string_view text);

// Returns "Peak reserved 2 GiB." for "peak reserved 2 GiB".
std::string Sentence(std::string_view text);

// A table cell.
struct Cell {
  std::string html;
  bool is_number = false;  // right-aligned
  std::string title = {};  // shown by the browser on hover; text
  bool is_long = false;    // a sentence, whose column does not become narrow
};
Cell TextCell(std::string_view text);
Cell NumberCell(std::string_view text);
Cell CountCell(int64_t count);
// Returns "6.73 GiB"; the exact number of bytes is its title.
Cell SizeCell(int64_t bytes);
// Returns a bar for `part` of `whole`, drawn without style attributes, which the page's content
// security policy forbids.
Cell BarCell(int64_t part, int64_t whole);

// Returns a link into the charts, to a position and to the block at `address` there (0: none).
Cell PlaceCell(std::string_view text, int64_t position, int64_t address);

// Returns the colour of the n-th curve that is drawn over the run's own: those of other settings,
// then those with changes of the script.
std::string Swatch(int curve);

// Returns a table that scrolls by itself if it is wider than the screen. The first row decides
// which columns are numeric. "" without rows.
std::string Table(std::string_view caption, const std::vector<std::string_view>& columns,
                  const std::vector<std::vector<Cell>>& rows);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_H_
