#include "sim/category/category.h"

#include <array>

namespace memreplay {
namespace {

constexpr std::array<std::string_view, kCategories> kCategoryNames = {
    "parameter", "buffer", "gradient", "optimizer_state", "activation",    "logits", "temporary",
    "input",     "cache",  "copy",     "workspace",       "communication", "unknown"};
constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "load", "forward", "backward", "optimizer", "evaluation", "other"};
constexpr std::array<std::string_view, kEvidences> kEvidenceNames = {"told", "stack", "lifetime",
                                                                     "size", "none"};

}  // namespace

std::string_view CategoryName(Category category) {
  return kCategoryNames[static_cast<size_t>(category)];
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
    if (kCategoryNames[i] == tag) return static_cast<Category>(i);
  }
  return std::nullopt;
}

}  // namespace memreplay
