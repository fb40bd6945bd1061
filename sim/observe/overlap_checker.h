// A check that is independent of the caching rules: it watches the events of a run and reports the
// first that cannot be true of real memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/model/observer.h"
#include "trace/value/event.h"
#include "trace/value/memory_state.h"
#include "trace/value/units.h"

namespace memreplay {

// An observer that checks for every event that
//   * an allocated block lies within one live segment, or within mapped pages
//     of one stream and pool; it has that stream and pool, holds the request
//     and shares no byte with another block that is not yet completely free;
//   * free_requested and free_completed name a live block with its size, in
//     this order, each once;
//   * segments and mapped ranges never overlap; what is freed or unmapped was
//     there and holds no live block;
//   * a snapshot event has the number of active bytes.
// Ids may be absent (kNoAllocation); where present they must be unique among live blocks. O(log
// live blocks) per event. The checks end after a violation.
class OverlapChecker final : public Observer {
 public:
  struct Violation {
    uint64_t event;  // index, from 0
    std::string message;
  };

  OverlapChecker() = default;
  // Stream and pool of what exists at the start are taken from the first event that touches it.

  void OnStartEvent(const Event& event) override { OnEvent(event); }
  void OnStart(const MemoryState& state, const Allocator& allocator) override;
  void OnEvent(const Event& event) override;

  const std::optional<Violation>& violation() const { return violation_; }
  uint64_t live_blocks() const { return blocks_.size(); }
  Bytes reserved_bytes() const { return reserved_; }
  Bytes active_bytes() const { return active_; }

 private:
  static constexpr uint32_t kAnyStream = ~uint32_t{0};

  struct Range {
    Address end;
    uint32_t stream = kAnyStream;
    uint16_t pool = 0;
    bool is_mapped = false;  // pages of an expandable segment
  };
  struct Block {
    Address end;
    Bytes size;  // as requested
    AllocationId id = kNoAllocation;
    bool is_pending = false;  // free_requested was seen
  };
  using Ranges = std::map<Address, Range>;
  using Blocks = std::map<Address, Block>;

  void Fail(const Event& event, const std::string& message);
  void OnAlloc(const Event& event);
  void OnFree(const Event& event);
  void OnFreeCompleted(const Event& event);
  void OnNewRange(const Event& event, bool is_mapped);
  void OnSegmentFree(const Event& event);
  void OnSegmentUnmap(const Event& event);
  // Returns the live block that shares a byte with [begin, end), or blocks_.end().
  Blocks::iterator BlockIn(Address begin, Address end);
  Ranges::iterator RangeIn(Address begin, Address end);
  // Returns the range that contains all of [begin, end), or ranges_.end().
  Ranges::iterator RangeHolding(Address begin, Address end);

  Ranges ranges_;  // touching mapped ranges of one stream and pool are joined
  Blocks blocks_;
  std::map<AllocationId, Address> ids_;
  Bytes reserved_;
  Bytes active_;
  uint64_t next_event_ = 0;
  std::optional<Violation> violation_;
};

}  // namespace memreplay
