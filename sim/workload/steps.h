// The steps of a training (or serving) loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "trace/value/bounded.h"
#include "trace/value/trace.h"

namespace memreplay {

enum class StepSource : uint8_t {
  kNone,
  kMarks,        // phases of a schedule whose names begin alike and differ in a number
  kAnnotations,  // ranges that PyTorch or the script annotated in a recording
  kPeriod,       // the sequence of allocations repeats itself
};

// The steps of a loop.
struct Steps {
  StepSource source = StepSource::kNone;
  std::string name;  // of what begins (or, "...step", ends) kMarks and kAnnotations
  // Positions in DeviceTrace::events where steps begin, ascending, followed by the end of the last
  // whole step. Empty, or at least kMinSteps + 1.
  std::vector<uint64_t> begins;
  uint64_t allocations_per_step = 0;  // the median
  // For kPeriod, the share of the allocations inside the steps that are the same, in size, stream
  // and stack, one step later.
  double agreement = 1;
  // The share of all allocations before `end` that are in the steps. What lies between two steps
  // (an evaluation) is not in them.
  double coverage = 0;
  // Whether three of four steps allocate both under Python code and, without any, in the backward
  // pass, so that they are no layers of one pass.
  bool whole = false;
  std::string why_none;  // half a sentence, for kNone

  size_t count() const { return begins.empty() ? 0 : begins.size() - 1; }
};

inline constexpr size_t kMinSteps = 3;

// Finds steps among events before `end`. Tries in this order: phases of a schedule that was
// written; annotations of a recording, numbered ones ("ProfilerStep#7") before an optimizer's step;
// what repeats (repetition.h) by size, stream, pool and stack or, if that holds less than half of
// all allocations, without the size. Repeats are no steps if annotations show fewer steps, if less
// than half of the memory requested meanwhile is requested in the repeats, if they move next to
// nothing of what moves, or if each of them frees memory. O(events).
Steps FindSteps(const Trace& trace, const DeviceTrace& device, uint64_t end);

// Requested bytes that are live, followed through the events of an unvalidated file from an unknown
// start that counts as 0. Frees of a schedule that was written name a handle; those of a recording
// also have a size. O(1) per event.
class LiveBytes {
 public:
  LiveBytes(const Trace& trace, const DeviceTrace& device)
      : is_program_(trace.is_program), end_of_life_(EndOfLife(trace, device)) {}
  bool IsEndOfLife(const Event& event) const { return event.kind == end_of_life_; }
  void Pass(const Event& event) {
    if (event.kind == EventKind::kAlloc) {
      now_ = BoundedSum(now_, event.size.signed_value());
      if (is_program_) sizes_[event.address.value()] = event.size.signed_value();
    } else if (event.kind == end_of_life_) {
      if (!is_program_) {
        now_ = BoundedSum(now_, -Bounded(event.size.signed_value()));
      } else if (const auto found = sizes_.find(event.address.value()); found != sizes_.end()) {
        now_ = BoundedSum(now_, -Bounded(found->second));
        sizes_.erase(found);
      }
    }
  }
  int64_t now() const { return now_; }

 private:
  bool is_program_;
  EventKind end_of_life_;
  int64_t now_ = 0;
  absl::flat_hash_map<uint64_t, int64_t> sizes_;
};

}  // namespace memreplay
