// The columns of tables by category, in the words of `synth --summary` and of recordings.
#ifndef MEMREPLAY_REPORT_WORDS_CATEGORY_COLUMNS_H_
#define MEMREPLAY_REPORT_WORDS_CATEGORY_COLUMNS_H_

#include <google/protobuf/map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memreplay {

// A column of a table by category.
struct CategoryColumn {
  std::string_view heading;   // of at most 8 characters
  std::string_view sentence;  // "parameters and buffers"
  std::vector<std::string_view>
      tags;  // of a written schedule, and names of categories; empty: what no other column has
};

// Returns the columns. `with_unknown` adds a last column for what is unknown, which written
// schedules do not have.
const std::vector<CategoryColumn>& CategoryColumns(bool with_unknown);

// Converts bytes by tag or category to bytes by column.
std::vector<int64_t> ByColumn(const google::protobuf::Map<std::string, int64_t>& bytes,
                              bool with_unknown);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_CATEGORY_COLUMNS_H_
