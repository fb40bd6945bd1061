// Packs a whole run as the page carries it: every allocation, range and event, in columns, with the
// stacks and names that they refer to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/page/render_html.h"
#include "report/run/run_log.h"
#include "sim/category/meanings.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Makes the columns that docs/report.md, "The data", describes, on at most `threads` threads.
// O(events + frames of the stacks that occur).
RunData MakeRunData(const Schedule& schedule, const Meanings& meanings, const RunLog& log,
                    size_t threads);

// A packed column. Its values are divided by their greatest common divisor, `unit`; if `is_delta`,
// each value but the first is then the difference from the one before, zigzag (0, -1, 1, -2 ... are
// 0, 1, 2, 3 ...). The result is stored in `width` planes, the lowest bytes of all values first,
// and deflated (zlib format).
struct Column {
  std::string name;
  uint64_t count = 0;
  uint64_t unit = 1;
  int width = 1;  // 1 to 8 bytes
  bool is_delta = false;
  std::string deflated;
};

// Packs values, which have 1, 2, 4 or 8 bytes. O(values).
template <typename Value = uint64_t>
Column PackColumn(std::string_view name, std::vector<Value> values, bool is_delta);
// Packs bytes unchanged, for example a text in UTF-8.
Column PackBytes(std::string_view name, std::string_view bytes);

// Return the columns' head as JSON, in order, and all columns, one after the other, in base64.
std::string ColumnsJson(const std::vector<Column>& columns);
std::string ColumnsBase64(const std::vector<Column>& columns);

}  // namespace memreplay
