// Runs a compiled schedule program and returns its events one by one. Memory is proportional to
// what is live, never to the number of events.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "trace/program/counter_random.h"
#include "trace/program/program_code.h"
#include "trace/value/event.h"
#include "trace/value/tables.h"

namespace memreplay::program {

// The live allocations of a random load, in the order of their frees.

// The live blocks of a random_load statement.
class RandomLoad {
 public:
  struct Block {
    uint64_t due = 0;  // freed before the allocation with this number
    uint64_t handle = 0;
    int64_t size = 0;
    uint32_t stream = 0;
  };

  RandomLoad(int64_t ops, int64_t live_target, int64_t streams)
      : ops_(static_cast<uint64_t>(ops)), live_target_(live_target), streams_(streams) {}

  bool done() const { return op_ == ops_; }
  uint64_t op() const { return op_; }
  int64_t streams() const { return streams_; }

  // Returns whether a block, the one that Free() returns, must be freed before `size` more bytes
  // are allocated.
  bool MustFree(int64_t size) const {
    return !blocks_.empty() && (blocks_.top().due <= op_ || size > live_target_ - live_bytes_);
  }
  bool empty() const { return blocks_.empty(); }
  size_t bytes() const { return blocks_.size() * sizeof(Block); }
  Block Free() {
    const Block block = blocks_.top();
    blocks_.pop();
    live_bytes_ -= block.size;
    return block;
  }
  // Adds the allocation of this step and starts the next step.
  void Add(const Block& block) {
    blocks_.push(block);
    live_bytes_ += block.size;
    ++op_;
  }

 private:
  struct DiesLater {
    bool operator()(const Block& a, const Block& b) const {
      return a.due != b.due ? a.due > b.due : a.handle > b.handle;
    }
  };

  uint64_t ops_;
  int64_t live_target_;
  int64_t streams_;
  uint64_t op_ = 0;
  int64_t live_bytes_ = 0;
  std::priority_queue<Block, std::vector<Block>, DiesLater> blocks_;
};

// A run of a compiled program that produces its events one by one.
class ProgramExpander {
 public:
  static constexpr size_t kMaxCallDepth = 200;
  // Statements that may be executed for each event, and for how many events they may be ahead: a
  // loop without events ends in a tenth of a second, however many events the schedule may have.
  static constexpr uint64_t kStepsPerEvent = 64;
  static constexpr uint64_t kEventsAhead = 200'000;
  // The maximum bytes of distinct texts, and of one path of phases.
  static constexpr uint64_t kMaxTexts = uint64_t{256} << 20;
  static constexpr size_t kMaxPhasePath = 4096;
  // Event::stream of events that name no stream.
  static constexpr uint32_t kNoStream = 0xffffffff;

  // Adds texts and stacks to the tables. All three arguments must outlive the expander.
  ProgramExpander(const ProgramCode* code, StringTable* strings, StackTable* stacks);
  // Returns a copy that continues from here in the same way; the tables must have all texts by
  // then.
  ProgramExpander Again() const;

  // Produces the next event; returns false at the end or after a failure. Requests have handles,
  // counted from 1 and never reused, and ids, counted from 0 in the order of the allocations;
  // Event::stream is a stream's handle. Amortised O(1).
  bool Next(Event* event);
  // Returns the failure, if any: "PLACE: expected X, found Y".
  const absl::Status& status() const { return status_; }
  uint64_t events() const { return events_; }
  uint32_t allocations() const { return next_id_; }
  // Returns the approximate memory in bytes.
  size_t bytes() const;

  // A live allocation.
  struct Live {
    uint64_t handle = 0;
    Bytes size;
    uint32_t stream = 0;
    uint32_t phase = kNoText;  // phase of the allocation
    uint32_t name = kNone;     // ProgramCode::handles; kNone: of a random load
    AllocationId id = kNoAllocation;
    uint64_t event = 0;  // index of the allocation
  };
  void VisitLive(const std::function<void(const Live&)>& visit) const;

 private:
  using Indexes = std::array<int64_t, kMaxIndexes>;
  struct Key {
    uint32_t name = 0;
    Indexes indexes = {};
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.name, key.indexes);
    }
  };
  struct Frame {
    uint32_t return_to;
    size_t variables;  // index of the caller's first
  };

  // The functions below return false after a failure.
  bool Fail(std::string_view expected, std::string_view found);
  bool Execute(const Operation& op);
  bool Value(uint32_t expression, int64_t* value);
  bool ValueAtLeast(uint32_t expression, int64_t least, std::string_view what, int64_t* value);
  bool Resolve(uint32_t handle, Key* key);
  bool FindLive(uint32_t handle, Key* key, Live** live);
  bool Stream(uint32_t expression, uint32_t otherwise, uint32_t* stream);
  bool Text(uint32_t text, uint32_t* string);
  bool Label(uint32_t label, uint32_t* stack);
  bool DrawNumber(uint32_t distribution, int64_t* value);
  bool Memory(const Operation& op);
  bool Synchronise(const Operation& op);
  bool LoopBegin(const Operation& op);
  bool HasRoomFor(uint64_t events);
  bool Call(const Operation& op);
  bool Phase(const Operation& op);
  bool Random(const Operation& op);
  bool Emit(const Event& event);
  Live NewLive(Event* event, uint32_t name);
  uint32_t Interned(std::string_view text);
  std::string Spell(uint32_t handle, const Key& key) const;

  const ProgramCode& code_;
  const StringTable& strings_;
  const StackTable& stacks_;
  StringTable* new_strings_;  // null: all texts are known
  StackTable* new_stacks_;
  absl::Status status_;
  CounterRandom random_;

  uint32_t at_ = 0;     // next operation
  uint32_t place_ = 0;  // place for errors
  bool ended_ = false;
  uint64_t steps_ = 0;
  const uint64_t steps_ahead_;
  uint64_t events_ = 0;
  std::vector<Event> queue_;  // events to return next
  size_t queue_at_ = 0;

  std::vector<int64_t> variables_;  // of all calls; the current one's start at base_
  size_t base_ = 0;
  std::vector<Frame> frames_;

  absl::flat_hash_map<Key, Live> live_;
  absl::flat_hash_map<Key, Live> outside_;
  absl::flat_hash_map<Key, uint64_t> cuda_events_;
  uint64_t last_handle_ = 0;
  AllocationId next_id_ = 0;

  std::vector<uint32_t> phases_ = {kNoText};  // paths, outermost first
  bool phase_changed_ = false;                // since the last event

  // Numbers of constant texts and labels, which are looked up once.
  std::vector<uint32_t> text_numbers_;
  std::vector<uint32_t> stack_numbers_;
  std::string scratch_;
  static constexpr uint64_t kTextMemory = 80;  // of a text, in addition to its characters
  uint64_t text_memory_ = 0;

  std::optional<RandomLoad> load_;  // the running load
};

}  // namespace memreplay::program
