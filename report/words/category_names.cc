#include "report/words/category_names.h"

#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct CategoryRow {
  std::string_view name, noun, heading;
  std::string_view column;  // that it shares; neighbours have the same
  std::string_view tag;     // of a written schedule, if it is another
};

constexpr CategoryRow kCategoryRows[] = {
    {"parameter", "parameters", "params", "params", ""},
    {"buffer", "buffers", "buffers", "params", ""},
    {"gradient", "gradients", "grads", "grads", ""},
    {"optimizer_state", "optimizer state", "optim", "optim", "optimizer"},
    {"copy", "copies of weights in another type", "copies", "copies", "weight_cast"},
    {"activation", "activations", "activ", "activ", ""},
    {"logits", "logits and loss", "logits", "logits", ""},
    {"temporary", "temporaries", "temp", "temp", ""},
    {"workspace", "workspaces", "work", "work", ""},
    {"input", "inputs", "inputs", "other", ""},
    {"cache", "KV cache", "caches", "other", "kv_cache"},
    {"communication", "communication", "comm", "other", ""},
    {"", "everything else", "other", "other", ""},  // tags of the user's own
    {"unknown", "unknown", "unknown", "unknown", ""},
};

const CategoryRow& RowOf(std::string_view category) {
  const CategoryRow* other = nullptr;
  for (const CategoryRow& row : kCategoryRows) {
    if (row.name.empty()) other = &row;
    if (row.name == category || (!row.tag.empty() && row.tag == category)) return row;
  }
  return *other;
}

}  // namespace

std::string_view CategoryNoun(std::string_view category) {
  const CategoryRow& row = RowOf(category);
  return row.name.empty() ? category : row.noun;
}

std::vector<CategoryColumn> CategoryColumns(const std::vector<const BytesByTag*>& rows,
                                            bool with_unknown) {
  std::vector<CategoryColumn> columns;
  std::string_view column;
  for (const CategoryRow& row : kCategoryRows) {
    if (row.name == "unknown" && !with_unknown) continue;
    if (row.column != column) {
      columns.push_back({std::string(row.column), "", std::vector<int64_t>(rows.size())});
    }
    column = row.column;
    CategoryColumn& to = columns.back();
    bool is_present = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [category, bytes] : *rows[i]) {
        const std::string_view known = RowOf(category).name;
        if (known != row.name && (known != "unknown" || with_unknown || !row.name.empty()))
          continue;
        to.bytes[i] += bytes;
        is_present |= bytes != 0;
      }
    }
    if (!is_present) continue;
    to.heading = to.sentence.empty() ? row.heading : row.column;
    StrAppend(&to.sentence, to.sentence.empty() ? "" : " and ", row.noun);
  }
  return columns;
}

}  // namespace memreplay
