// Defects of a readable trace, which never stop its import: each kind is a row of a table, counted,
// kept with the places where it was first seen, and shown in every report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace memreplay {

// How much a defect affects the results.
enum class Severity : uint8_t {
  kInfo,      // a fact worth knowing that affects nothing
  kDataLoss,  // the file lacks something; figures have an error bar
  kError,     // the file contradicts itself; memreplay exits non-zero
};

// The kinds of defects. To add one, add its row in diagnostics.cc too.
enum class DiagnosticKind : uint8_t {
  kUnknownKey,            // a key that no reader knows
  kFreeOfUnknownAddress,  // warm start or lost head: block was live before the trace
  kAllocOverLiveBlock,    // two live blocks would share an address
  kAllocOutsideSegments,  // alloc into a segment the file does not know
  kFreeCompletedWithoutRequest,
  kLostHead,                   // ring buffer wrapped, or recording began late
  kNoTrace,                    // device_traces is empty; only the final state is known
  kNoBlockAddresses,           // 2.0 layout: addresses were accumulated from sizes
  kSegmentSumMismatch,         // blocks of a segment do not add up to its size
  kStartStateUnderdetermined,  // several start states match the evidence
  kUnsupportedAction,          // a trace action that is not replayed (annotate, user_defined)
  kLeak,                       // a schedule ends with live allocations
  kFreeOfDeadHandle,           // a schedule frees or uses an id that is not live
  kAllocOfLiveHandle,          // a schedule allocates an id that is live
  kInferredEmptyCache,         // empty_cache is not recorded; it was inferred
  kInferredRecordStream,       // record_stream is not recorded; it was inferred
  kImpossibleSegment,          // impossible for a driver: overlaps another or is out of range
  kMisplacedNotes,             // Python's notes have places that the recording does not have
  kCount,
};

// The name and severity of a kind of diagnostic.
struct DiagnosticRow {
  std::string_view name;  // stable, snake_case
  Severity severity;
  std::string_view sentence;  // what it means for the reader of a report
};

const DiagnosticRow& DescribeDiagnostic(DiagnosticKind kind);
std::optional<DiagnosticKind> DiagnosticFromName(std::string_view name);

// The count of each kind, with the first few places and details.
class Diagnostics {
 public:
  static constexpr size_t kKeptPlaces = 5;
  struct Place {
    uint64_t position;   // byte offset or event index, see `what`
    std::string detail;  // "key 'foo'", "address 0x7f..", may be empty
  };

  // Counts a defect. `position` is an event index, or a byte offset for kUnknownKey. One place may
  // stand for several occurrences (`times`, at least 1).
  void Add(DiagnosticKind kind, uint64_t position, std::string_view detail = "",
           uint64_t times = 1);
  // Restores the counts of an earlier reader that a file of memreplay contains.
  void Restore(DiagnosticKind kind, uint64_t count, std::vector<Place> places);
  // Adds the counts and places of another object, to combine those of a reader and a builder.
  void Merge(const Diagnostics& other);

  uint64_t count(DiagnosticKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  absl::Span<const Place> places(DiagnosticKind kind) const {
    return places_[static_cast<size_t>(kind)];
  }
  bool has_errors() const;
  bool empty() const;

 private:
  uint64_t counts_[static_cast<size_t>(DiagnosticKind::kCount)] = {};
  std::vector<Place> places_[static_cast<size_t>(DiagnosticKind::kCount)];
};

}  // namespace memreplay
