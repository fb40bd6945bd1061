// Builds pieces of HTML. Parameters called `html` are already markup; those called `text` get
// escaped.
#pragma once

#include <string>
#include <string_view>

#include "report/table/table.h"
#include "trace/value/strings.h"

namespace memreplay {

// Escapes text for element content and quoted attributes.
std::string EscapeHtml(std::string_view text);

// Returns "<tag>text</tag>", where the text is all the pieces; `tag` may have attributes ("p
// class=\"note\"").
template <typename... Pieces>
std::string Element(std::string_view tag, const Pieces&... pieces) {
  return StrCat("<", tag, ">", EscapeHtml(StrCat(pieces...)), "</", tag.substr(0, tag.find(' ')),
                ">");
}

// Returns "By stack" for "by stack".
std::string Capitalized(std::string_view text);
// Returns "Peak reserved 2 GiB." for "peak reserved 2 GiB".
std::string Sentence(std::string_view text);

// Returns the colour of the n-th curve that is drawn over the run's own: those of other settings,
// then those with changes of the script.
std::string Swatch(int curve);

// Returns a table that scrolls by itself if it is wider than the screen, and its note, without
// columns that are empty. "" without rows.
std::string HtmlTable(const Table& table);

// Returns a section with a heading; "" without content.
std::string Section(std::string_view title, std::string_view html);
// Returns a section of a single table, with its title as the heading.
std::string Section(Table table);

}  // namespace memreplay
