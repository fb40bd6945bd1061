#include "sim/observe/decisions.h"

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

bool IsDecision(EventKind kind) { return IsTraced(kind) && kind != EventKind::kSnapshot; }

// Returns the position of the next decision from `at` on that is in the scope.
size_t Next(absl::Span<const Decision> decisions, size_t at, DecisionScope scope) {
  if (scope == DecisionScope::kRequests) {
    while (at < decisions.size() && IsSegmentEvent(decisions[at].event.kind)) ++at;
  }
  return at;
}

}  // namespace

bool SameDecision(const Decision& a, const Decision& b, DecisionScope scope) {
  return a.event.kind == b.event.kind && a.event.size == b.event.size &&
         a.event.stream == b.event.stream && a.event.pool == b.event.pool &&
         a.event.id == b.event.id &&
         (scope == DecisionScope::kRequests ||
          (a.event.block_size == b.event.block_size && a.place == b.place));
}

void DecisionLog::OnEvent(const Event& event) {
  if (!IsDecision(event.kind)) return;
  const Place place = event.kind == EventKind::kOom ? Place{} : device_.PlaceOf(event.address);
  decisions_.push_back({event, request_, place});
}

DecisionComparison CompareDecisions(absl::Span<const Decision> predicted,
                                    absl::Span<const Decision> measured, DecisionScope scope) {
  DecisionComparison result;
  size_t p = Next(predicted, 0, scope);
  size_t m = Next(measured, 0, scope);
  while (p < predicted.size() || m < measured.size()) {
    ++result.compared;
    const Decision* a = p < predicted.size() ? &predicted[p] : nullptr;
    const Decision* b = m < measured.size() ? &measured[m] : nullptr;
    // A decision has no counterpart if the other run has no more of them in this request.
    if (a != nullptr && b != nullptr && a->request != b->request) {
      (a->request < b->request ? b : a) = nullptr;
    }
    if (a != nullptr && b != nullptr && SameDecision(*a, *b, scope)) {
      ++result.equal;
    } else if (!result.first.has_value()) {
      DecisionDifference& first = result.first.emplace();
      first.request = a != nullptr ? a->request : b->request;
      if (a != nullptr) first.predicted = *a;
      if (b != nullptr) first.measured = *b;
    }
    if (a != nullptr) p = Next(predicted, p + 1, scope);
    if (b != nullptr) m = Next(measured, m + 1, scope);
  }
  return result;
}

std::string DescribeDecision(const Decision& decision) {
  const Event& event = decision.event;
  std::string text = StrCat(EventKindName(event.kind), " of ", event.size.value(),
                            " bytes on stream ", event.stream);
  if (event.block_size != Bytes() && event.block_size != event.size) {
    StrAppend(&text, ", extent ", event.block_size.value());
  }
  if (decision.place.region != kNoRegion) {
    StrAppend(&text, ", in segment ", decision.place.region, " at offset ",
              decision.place.offset.value());
  }
  return text;
}

}  // namespace memreplay
