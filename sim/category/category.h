// What an allocation is for, and when in the script it was made, in the words that every command
// uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memreplay {

enum class Category : uint8_t {
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kActivation,     // saved for backward
  kLogits,         // logits and loss
  kTemporary,      // freed within its phase
  kInput,          // what a model is called with
  kCache,          // keys and values of earlier tokens
  kCopy,           // of a weight in another type (autocast)
  kWorkspace,      // cuBLAS, cuDNN
  kCommunication,  // buckets and buffers of torch.distributed
  kUnknown,
};
inline constexpr size_t kCategories = static_cast<size_t>(Category::kUnknown) + 1;

enum class Phase : uint8_t { kLoad, kForward, kBackward, kOptimizer, kEvaluation, kOther };
inline constexpr size_t kPhases = static_cast<size_t>(Phase::kOther) + 1;

// How a category is known, the strongest evidence first.
enum class Evidence : uint8_t {
  kNoted,     // Python noted it, or the schedule tags it
  kStack,     // the frames of the request
  kLifetime,  // when it was freed, compared with the phases
  kSize,      // its size equals that of something known
  kNone,
};
inline constexpr size_t kEvidences = static_cast<size_t>(Evidence::kNone) + 1;

// Stable names in snake_case, for JSON, tables and Perfetto.
inline constexpr std::array<std::string_view, kCategories> kCategoryNames = {
    "parameter", "buffer", "gradient", "optimizer_state", "activation",    "logits", "temporary",
    "input",     "cache",  "copy",     "workspace",       "communication", "unknown"};
inline constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "load", "forward", "backward", "optimizer", "evaluation", "other"};
inline constexpr std::array<std::string_view, kEvidences> kEvidenceNames = {
    "told", "stack", "lifetime", "size", "none"};

constexpr std::string_view CategoryName(Category category) {
  return kCategoryNames[static_cast<size_t>(category)];
}
constexpr std::string_view PhaseName(Phase phase) {
  return kPhaseNames[static_cast<size_t>(phase)];
}
constexpr std::string_view EvidenceName(Evidence evidence) {
  return kEvidenceNames[static_cast<size_t>(evidence)];
}

// Returns the category of a schedule's tag: those that `synth` writes, and the names above.
inline std::optional<Category> CategoryOfTag(std::string_view tag) {
  if (tag == "optimizer") return Category::kOptimizerState;
  if (tag == "weight_cast") return Category::kCopy;
  if (tag == "kv_cache") return Category::kCache;
  for (size_t i = 0; i < kCategories; ++i) {
    if (kCategoryNames[i] == tag) return static_cast<Category>(i);
  }
  return std::nullopt;
}

}  // namespace memreplay
