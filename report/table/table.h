// A table of a report before it is drawn: what its cells are, and how each column looks on a
// terminal and on a page.
#ifndef MEMREPLAY_REPORT_TABLE_TABLE_H_
#define MEMREPLAY_REPORT_TABLE_TABLE_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/words/lines.h"

namespace memreplay {

// How a column writes its cells. Everything but words, code and bars is flush right.
enum class Unit {
  kWords,
  kCode,   // words, set as code on a page
  kLabel,  // a number that is written already: "event 3"
  kCount,
  kSize,
  kExactSize,  // a terminal also shows the bytes
  kMib,        // a terminal shows MiB without their name, which is in the title
  kShare,      // of `whole`
  kBar,        // of `whole`, on a page
};

// Where a column is shown.
enum class Medium { kBoth, kTerminal, kPage, kNeither };

// A column of a table. A terminal writes `before`, the cell and `after`, and nothing for an empty
// cell of a column without a width, so that a row can read as a sentence.
struct TableColumn {
  std::string heading = {};
  Unit unit = Unit::kWords;
  int width = 0;  // on a terminal, at least; negative: flush left; 0: each cell has its own
  std::string_view before = "  ";
  std::string_view after = "";
  std::string_view noun = "";  // of a count, on a terminal: "allocation"
  int64_t whole = 0;
  Medium medium = Medium::kBoth;
  std::string_view narrow = "";  // the heading on a terminal, if it is another
  bool leads = false;            // is in front of the others on a page
};

// Return columns of numbers below headings on a terminal, at least `width` wide.
inline TableColumn SizeColumn(std::string_view heading, int width = 1) {
  return {.heading = std::string(heading), .unit = Unit::kSize, .width = width};
}
inline TableColumn CountColumn(std::string_view heading, int width = 1) {
  return {.heading = std::string(heading), .unit = Unit::kCount, .width = width};
}

// A cell: a number in the unit of its column, or words.
struct Cell {
  Cell(std::integral auto from) : number(from) {}     // NOLINT(*-explicit-*)
  Cell(std::string from) : words(std::move(from)) {}  // NOLINT(*-explicit-*)
  Cell(std::string_view from) : words(from) {}        // NOLINT(*-explicit-*)
  Cell(const char* from) : words(from) {}             // NOLINT(*-explicit-*)
  // A link into the charts of a page, to a position and the block at `address` there (0: none).
  Cell(std::string from, int64_t to, int64_t block)
      : words(std::move(from)), position(to), address(block) {}

  std::optional<int64_t> number;
  std::string words;
  std::optional<int64_t> position;
  int64_t address = 0;
  std::string html = {};  // what a page shows instead, if it can show more
};

// A table: its columns, and a cell of each row for each of them.
struct Table {
  // A row, and lines that belong below it; a page unfolds them from its first words.
  struct Row {
    std::vector<Cell> cells;
    std::vector<std::string> lines = {};
    Tone tone = Tone::kPlain;
  };
  std::string title = {};  // "live by stack"; "": none
  std::vector<TableColumn> columns = {};
  std::vector<Row> rows = {};
  std::string note = {};      // below the rows
  int note_indent = 2;        // on a terminal
  bool has_headings = false;  // on a terminal; a page always shows them
};

// Returns a cell's number as its column writes it on a page, or its words.
std::string CellText(const TableColumn& column, const Cell& cell);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TABLE_TABLE_H_
