// Defects of a readable trace never stop its import: each kind is a row of one
// table, counted, kept with where it was first seen, and shown in every report.
#ifndef MEMREPLAY_TRACE_VALUE_DIAGNOSTICS_H_
#define MEMREPLAY_TRACE_VALUE_DIAGNOSTICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace memreplay {

enum class Severity : uint8_t {
  kInfo,      // a fact worth knowing; nothing is affected
  kDataLoss,  // the file lacks something; figures have an error bar
  kError,     // the file contradicts itself; the program exits non-zero
};

// Add a kind here and its row in diagnostics.cc.
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
  kStartStateUnderdetermined,  // several start states fit the evidence
  kUnsupportedAction,          // a trace action that is not replayed (annotate, user_defined)
  kLeak,                       // program ends with live allocations
  kFreeOfDeadHandle,           // program frees, uses an id that is not live
  kAllocOfLiveHandle,          // program allocates an id that is live
  kInferredEmptyCache,         // empty_cache is not recorded; it was inferred
  kInferredRecordStream,       // record_stream is not recorded; it was inferred
  kImpossibleSegment,          // no driver hands it out: it overlaps another, or ends nowhere
  kMisplacedNotes,             // Python's notes have places that the recording does not have
  kCount,
};

// What a kind of diagnostic is called, and how bad it is.
struct DiagnosticRow {
  std::string_view name;  // stable, snake_case
  Severity severity;
  std::string_view sentence;  // what it means for the reader of a report
};

const DiagnosticRow& DescribeDiagnostic(DiagnosticKind kind);
std::optional<DiagnosticKind> DiagnosticFromName(std::string_view name);

// Counts per kind, and for each the first few places and details.
class Diagnostics {
 public:
  static constexpr size_t kKeptPlaces = 5;
  struct Place {
    uint64_t position;   // byte offset or event index, see `what`
    std::string detail;  // "key 'foo'", "address 0x7f..", may be empty
  };

  // `position` is an event index, or a byte offset for kUnknownKey. A place may
  // stand for several occurrences (`times`, at least 1) of the same thing.
  void Add(DiagnosticKind kind, uint64_t position, std::string_view detail = "",
           uint64_t times = 1);
  // Adds what an earlier reader counted and one of our formats kept.
  void Restore(DiagnosticKind kind, uint64_t count, std::vector<Place> places);
  // Adds another's counts and places (readers and builders are merged so).
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

#endif  // MEMREPLAY_TRACE_VALUE_DIAGNOSTICS_H_
