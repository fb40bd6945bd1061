#include "sim/category/category.h"

namespace memreplay {
namespace {

struct CategoryRow {
  std::string_view name, noun;
};
constexpr std::array<CategoryRow, kCategories> kCategoryRows = {{
    {"parameter", "parameters"},
    {"buffer", "buffers"},
    {"gradient", "gradients"},
    {"optimizer_state", "optimizer state"},
    {"activation", "activations"},
    {"logits", "logits and loss"},
    {"temporary", "temporaries"},
    {"input", "inputs"},
    {"cache", "KV cache"},
    {"copy", "copies of weights in another type"},
    {"workspace", "workspaces"},
    {"communication", "communication"},
    {"unknown", "unknown"},
}};
constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "load", "forward", "backward", "optimizer", "evaluation", "other"};
constexpr std::array<std::string_view, kEvidences> kEvidenceNames = {"told", "stack", "lifetime",
                                                                     "size", "none"};

}  // namespace

std::string_view CategoryName(Category category) {
  return kCategoryRows[static_cast<size_t>(category)].name;
}
std::string_view CategoryNoun(Category category) {
  return kCategoryRows[static_cast<size_t>(category)].noun;
}
std::string_view PhaseName(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }
std::string_view EvidenceName(Evidence evidence) {
  return kEvidenceNames[static_cast<size_t>(evidence)];
}

std::optional<Category> CategoryOfTag(std::string_view tag) {
  if (tag == "optimizer") return Category::kOptimizerState;
  if (tag == "weight_cast") return Category::kCopy;
  if (tag == "kv_cache") return Category::kCache;
  for (size_t i = 0; i < kCategories; ++i) {
    if (kCategoryRows[i].name == tag) return static_cast<Category>(i);
  }
  return std::nullopt;
}

}  // namespace memreplay
