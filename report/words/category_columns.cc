#include "report/words/category_columns.h"

#include <algorithm>

namespace memreplay {

const std::vector<CategoryColumn>& CategoryColumns(bool with_unknown) {
  static const auto* const kOfPrograms = new std::vector<CategoryColumn>{
      {"params", "parameters and buffers", {"parameter", "buffer"}},
      {"grads", "gradients of parameters", {"gradient"}},
      {"optim", "optimizer state", {"optimizer", "optimizer_state"}},
      {"copies", "16-bit copies of weights", {"weight_cast", "copy"}},
      {"activ", "activations", {"activation"}},
      {"logits", "logits and loss", {"logits"}},
      {"temp", "temporaries and gradients of activations", {"temporary"}},
      {"work", "workspaces", {"workspace"}},
      {"other", "inputs and everything else", {}},
  };
  static const auto* const kOfRecordings = [] {
    auto* const columns = new std::vector<CategoryColumn>(*kOfPrograms);
    columns->push_back({"unknown", "unknown", {"unknown"}});
    return columns;
  }();
  return with_unknown ? *kOfRecordings : *kOfPrograms;
}

std::vector<int64_t> ByColumn(const google::protobuf::Map<std::string, int64_t>& bytes,
                              bool with_unknown) {
  const std::vector<CategoryColumn>& columns = CategoryColumns(with_unknown);
  std::vector<int64_t> sums(columns.size());
  for (const auto& [tag, amount] : bytes) {
    size_t rest = 0, found = columns.size();
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].tags.empty()) rest = c;
      if (std::find(columns[c].tags.begin(), columns[c].tags.end(), tag) != columns[c].tags.end()) {
        found = c;
      }
    }
    sums[found == columns.size() ? rest : found] += amount;
  }
  return sums;
}

}  // namespace memreplay
