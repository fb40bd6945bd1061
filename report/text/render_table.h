// Draws a table for a terminal.
#pragma once

#include <string>

#include "report/table/table.h"
#include "report/words/lines.h"

namespace memreplay {

// Appends a table; nothing if it has no rows. A title has an empty line in front of it.
void AddTable(const Table& table, Text* out);
void AddTable(const Table& table, std::string* out);

}  // namespace memreplay
