// Draws a table for a terminal.
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_TABLE_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_TABLE_H_

#include <string>

#include "report/table/table.h"
#include "report/words/lines.h"

namespace memreplay {

// Appends a table; nothing if it has no rows. A title has an empty line in front of it.
void AddTable(const Table& table, Text* out);
void AddTable(const Table& table, std::string* out);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_TABLE_H_
