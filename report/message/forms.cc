#include "report/message/forms.h"

#include <iterator>

#include "report/message/rows.h"

namespace memreplay {
namespace {

constexpr bool QuantitiesAreInOrder() {
  for (size_t i = 0; i < std::size(kQuantities); ++i) {
    if (kQuantities[i].quantity != static_cast<Quantity>(i)) return false;
  }
  return std::size(kQuantities) == static_cast<size_t>(Quantity::kCount);
}
static_assert(QuantitiesAreInOrder());

constexpr bool AnchorsAreLong() {
  for (const Form& form : kForms) {
    if (form.anchor.size() < kShortestAnchor && form.kind != FormKind::kKilled) return false;
  }
  for (const std::string_view anchor : kContext) {
    if (anchor.size() < kShortestAnchor) return false;
  }
  return true;
}
static_assert(AnchorsAreLong());

}  // namespace

absl::Span<const Form> Forms() { return kForms; }
absl::Span<const std::string_view> ContextAnchors() { return kContext; }
absl::Span<const Field> MessageFields() { return kMessageFields; }
absl::Span<const NumberField> MessageNumbers() { return kMessageNumbers; }
absl::Span<const Field> ContextFields() { return kContextFields; }
absl::Span<const NumberField> ContextNumbers() { return kContextNumbers; }

std::string_view QuantityName(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)].name;
}
std::string_view QuantityWords(Quantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)].words;
}

}  // namespace memreplay
