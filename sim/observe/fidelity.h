// Compares what a run emits with what the file recorded, which proves exactness.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/model/observer.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"

namespace memreplay {

// The first place where simulation and recording differ.
struct Divergence {
  uint64_t index = 0;              // in Schedule::recorded()
  std::optional<Event> recorded;   // absent: the simulation has one more
  std::optional<Event> simulated;  // absent: the recording has one more
};

// Returns "recorded alloc 0x7f.. of 512 bytes on stream 0, simulated ...".
std::string DescribeDivergence(const Divergence& divergence, const Schedule& schedule);

// An observer that compares action, address, size, stream and order with Schedule::recorded(),
// request by request: an event too many or too few does not affect the next request. Events before
// the first request's are the rest of a request whose own event the recording lost, and are not
// compared. A recorded `snapshot` matches if its size equals the simulated active bytes. O(1) per
// event.
class Fidelity final : public Observer {
 public:
  // `schedule` must outlive the observer and must be a recording's. If the run may end after a
  // divergence, the recorded events that follow one are not counted.
  explicit Fidelity(const Schedule& schedule, bool may_stop = false);

  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnRequest(size_t request) override;
  void OnEvent(const Event& event) override;
  void OnEnd() override {
    if (!may_stop_ || !first_divergence_.has_value()) Advance(schedule_.recorded().size());
  }

  // Returns the number of recorded events passed so far; after OnEnd(), all that PyTorch records.
  uint64_t compared() const { return compared_; }
  uint64_t matched() const { return matched_; }
  // Returns the number of simulated events without a recorded counterpart.
  uint64_t surplus() const { return surplus_; }
  const std::optional<Divergence>& first_divergence() const { return first_divergence_; }
  // Returns the index of the first recorded event that differs, or the number of recorded events if
  // none does.
  uint64_t exact_until_event() const;

 private:
  // Handles recorded events that have no simulated counterpart: compares snapshots and skips
  // requests that PyTorch does not record.
  void SkipAsides(uint64_t end);
  void Advance(uint64_t end);  // counts the rest before `end` as missing
  void Diverge(uint64_t index, const Event* recorded, const Event* simulated);

  const Schedule& schedule_;
  const bool may_stop_;
  uint64_t next_ = 0;  // earlier recorded events were compared
  uint64_t head_end_;  // earlier events belong to a lost request
  uint64_t end_ = 0;   // end of the current request's recorded events
  Bytes active_;       // simulated
  uint64_t compared_ = 0;
  uint64_t matched_ = 0;
  uint64_t surplus_ = 0;
  std::optional<Divergence> first_divergence_;
};

// How the blocks at the end of a run compare with those that the file lists.
struct FinalComparison {
  uint64_t compared = 0;  // recorded blocks
  uint64_t matched = 0;   // in address, size, requested_size and state
  uint64_t segments_compared = 0;
  uint64_t segments_matched = 0;  // in address, size, stream and kind
  uint64_t surplus = 0;           // simulated blocks that the file does not list
  std::string first_mismatch;     // "" if all match
  bool exact() const {
    return matched == compared && segments_matched == segments_compared && surplus == 0;
  }
};

// Compares two states, both ascending by address. O(blocks).
FinalComparison CompareFinalState(const MemoryState& recorded, const MemoryState& simulated);

}  // namespace memreplay
