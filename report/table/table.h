// A table of a report before it is drawn: what its cells are, and how each column looks on a
// terminal and on a page.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/words/lines.h"

namespace memreplay {

// How a column writes its cells. Everything but words, code and bars is flush right on a page.
enum class Unit {
  kWords,
  kCode,   // words, set as code on a page; a remark follows after two spaces
  kLabel,  // a number that is written already: "event 3"
  kCount,
  kSize,
  kExactSize,  // a terminal also shows the bytes
  kMib,        // a terminal shows MiB without their name, which is in the title
  kShare,      // of `whole`
  kBar,        // of `whole`, on a page
};

// A column of a table.
struct TableColumn {
  std::string heading = {};
  Unit unit = Unit::kWords;
  // What a terminal writes; "": nothing. "%s" is the cell, "%10s" as wide as the widest, but at
  // least 10, and "%-10s" flush left. Of a cell that is empty and has no width, nothing is written,
  // so that a row can read as a sentence. The word after a count gets an s unless that is one.
  std::string_view text = "  %s";
  int64_t whole = 0;
  bool is_on_page = true;
  std::string narrow = {};  // the heading on a terminal, if it is another
  bool leads = false;       // is in front of the others on a page
};

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
  // A row, and lines that belong below it; a page unfolds them from its first cell.
  struct Row {
    std::vector<Cell> cells;
    Tone tone = Tone::kPlain;
    std::vector<std::string> lines = {};
  };
  Row& Add(std::vector<Cell> cells, Tone tone = Tone::kPlain) {
    return rows.emplace_back(Row{std::move(cells), tone});
  }

  std::string title;  // "live by stack"; "": none
  std::vector<TableColumn> columns;
  bool has_headings = false;  // on a terminal; a page always shows them
  int note_indent = 2;        // on a terminal
  std::string note = {};      // below the rows
  std::vector<Row> rows = {};
};

// Returns a cell's number as its column writes it on a page, or its words.
std::string CellText(const TableColumn& column, const Cell& cell);

}  // namespace memreplay
