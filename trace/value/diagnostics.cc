#include "trace/value/diagnostics.h"

#include <algorithm>
#include <utility>

namespace memreplay {
namespace {

constexpr DiagnosticRow kTable[] = {
    {"unknown_key", Severity::kInfo, "keys that this version does not know were skipped"},
    {"free_of_unknown_address", Severity::kDataLoss,
     "blocks were freed that were allocated before the recording began"},
    {"alloc_over_live_block", Severity::kError,
     "an allocation overlaps a block that is still live"},
    {"alloc_outside_segments", Severity::kDataLoss,
     "an allocation lies in no segment that the file lists"},
    {"free_completed_without_request", Severity::kDataLoss,
     "a free completed that was requested before the recording began"},
    {"lost_head", Severity::kDataLoss,
     "the recording does not reach back to the first allocation; the start state was rebuilt"},
    {"no_trace", Severity::kInfo, "the file holds a final state but no events"},
    {"no_block_addresses", Severity::kInfo,
     "block addresses are not in the file (PyTorch 2.0); they were added up from the sizes"},
    {"segment_sum_mismatch", Severity::kError, "the blocks of a segment do not add up to its size"},
    {"start_state_underdetermined", Severity::kDataLoss,
     "the file does not determine the state at its beginning"},
    {"unsupported_action", Severity::kInfo,
     "trace actions that do not concern memory were skipped"},
    {"live_at_end", Severity::kInfo, "allocations are live at the end of the schedule"},
    {"free_of_dead_handle", Severity::kError, "the schedule frees or uses an id that is not live"},
    {"alloc_of_live_handle", Severity::kError, "the schedule allocates an id that is live"},
    {"inferred_empty_cache", Severity::kInfo,
     "calls of empty_cache are not recorded; they were inferred from released segments"},
    {"inferred_record_stream", Severity::kInfo,
     "uses on other streams are not recorded; they were inferred from late completions"},
    {"impossible_segment", Severity::kError,
     "a segment overlaps another, or ends beyond every address of a GPU; it is left out of "
     "replays"},
    {"misplaced_notes", Severity::kInfo,
     "Python's notes do not fit the recording and were ignored; were the statistics of memory "
     "reset?"},
};
static_assert(std::size(kTable) == static_cast<size_t>(DiagnosticKind::kCount));

}  // namespace

const DiagnosticRow& DescribeDiagnostic(DiagnosticKind kind) {
  return kTable[static_cast<size_t>(kind)];
}

std::optional<DiagnosticKind> DiagnosticFromName(std::string_view name) {
  for (size_t row = 0; row < std::size(kTable); ++row) {
    if (kTable[row].name == name) return static_cast<DiagnosticKind>(row);
  }
  return std::nullopt;
}

void Diagnostics::Add(DiagnosticKind kind, uint64_t position, std::string_view detail,
                      uint64_t times) {
  const auto row = static_cast<size_t>(kind);
  counts_[row] += times;
  if (places_[row].size() < kKeptPlaces) places_[row].push_back({position, std::string(detail)});
}

void Diagnostics::Restore(DiagnosticKind kind, uint64_t count, std::vector<Place> places) {
  const auto row = static_cast<size_t>(kind);
  counts_[row] += count;
  for (Place& place : places) {
    if (places_[row].size() < kKeptPlaces) places_[row].push_back(std::move(place));
  }
}

void Diagnostics::Merge(const Diagnostics& other) {
  for (size_t row = 0; row < std::size(counts_); ++row) {
    Restore(static_cast<DiagnosticKind>(row), other.counts_[row], other.places_[row]);
  }
}

bool Diagnostics::has_errors() const {
  for (size_t row = 0; row < std::size(counts_); ++row) {
    if (counts_[row] > 0 && kTable[row].severity == Severity::kError) return true;
  }
  return false;
}

bool Diagnostics::empty() const {
  return std::all_of(std::begin(counts_), std::end(counts_), [](uint64_t n) { return n == 0; });
}

}  // namespace memreplay
