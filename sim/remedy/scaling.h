// Recordings of one script that differ in a number, such as the batch size, and what the script
// would request with another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// A recording, and the number that the script had.
struct RecordedValue {
  std::string name;  // for errors: the file
  int64_t value = 0;
  const Schedule* schedule = nullptr;  // not owned; its events are kept
};

// The size of each allocation as a function of the number: on the line through the two recordings
// whose values are nearest. Immutable.
class Scaling {
 public:
  // The requests of all recordings must correspond to those of the first: the same kinds in the
  // same order, from the same lines of code, of the same allocations. Only sizes may differ.
  // Errors: InvalidArgument for the first request that does not correspond, with both events; for
  // fewer than two recordings, two of one value, and one in which memory ran out.
  // O(requests + frames).
  static absl::StatusOr<Scaling> Find(std::vector<RecordedValue> recordings);

  // Returns the size of an allocation of the first recording.
  Bytes SizeOf(AllocationId id, int64_t value) const;
  // Returns the first recording with the sizes of another value. O(events).
  Schedule At(int64_t value) const;

  const RecordedValue& base() const { return recordings_[base_]; }
  // Returns the recordings in the order of their values.
  absl::Span<const RecordedValue> recordings() const { return recordings_; }

  size_t allocations() const { return sizes_[0].size(); }
  size_t growing() const { return growing_; }  // those whose sizes differ
  // Returns those whose sizes are not linear in the number: of three recordings and more, they are
  // not on one line; of two, the line is not one that tensors have, a + b * number with whole a and
  // b that are not negative.
  size_t bent() const { return bent_; }
  Bytes largest_bent() const { return largest_bent_; }  // with the largest value

 private:
  Scaling() = default;
  void CountBent();

  std::vector<RecordedValue> recordings_;  // ascending by value
  std::vector<std::vector<Bytes>> sizes_;  // by recording, by id of the base
  size_t base_ = 0;
  size_t growing_ = 0;
  size_t bent_ = 0;
  Bytes largest_bent_;
};

}  // namespace memreplay
