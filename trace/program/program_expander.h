// Runs a compiled schedule program and hands out its events one by one. Memory:
// what is live, never what went by.
#ifndef MEMREPLAY_TRACE_PROGRAM_PROGRAM_EXPANDER_H_
#define MEMREPLAY_TRACE_PROGRAM_PROGRAM_EXPANDER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "trace/program/counter_random.h"
#include "trace/program/program_code.h"
#include "trace/program/random_load.h"
#include "trace/value/event.h"
#include "trace/value/tables.h"

namespace memreplay::program {

// Executes a compiled program and makes its events one by one.
class ProgramExpander {
 public:
  // Depth of calls, and statements executed for each event that is allowed.
  static constexpr size_t kMaxCallDepth = 200;
  static constexpr uint64_t kStepsPerEvent = 64;
  // Bytes of memory for distinct texts, and of one path of phases.
  static constexpr uint64_t kMaxTexts = uint64_t{256} << 20;
  static constexpr size_t kMaxPhasePath = 4096;
  // Event::stream of events that name none.
  static constexpr uint32_t kNoStream = 0xffffffff;

  // All three must outlive the expander. Texts and stacks go into the tables.
  ProgramExpander(const ProgramCode* code, StringTable* strings, StackTable* stacks);
  // One that goes on from here as this one does; the tables have all texts by then.
  ProgramExpander Again() const;

  // The next event, or false: at the clean end, or after a failure. Requests carry
  // handles, from 1 on and never used again, and ids, from 0 on in the order of the
  // allocations; Event::stream is a stream's handle. Amortised O(1).
  bool Next(Event* event);
  // Not OK after a failure: "PLACE: expected X, found Y".
  const absl::Status& status() const { return status_; }
  uint64_t events() const { return events_; }
  uint32_t allocations() const { return next_id_; }
  // Of memory, about.
  size_t bytes() const;

  // What is allocated and not freed so far, by name.
  struct Live {
    uint64_t handle = 0;
    Bytes size;
    uint32_t stream = 0;
    uint32_t phase = kNoText;  // in which it was allocated
    uint32_t name = kNone;     // ProgramCode::handles; kNone: of a random load
    AllocationId id = kNoAllocation;
    uint64_t event = 0;  // its position
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
    size_t variables;  // where the caller's begin
  };

  // All return false after a failure.
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
  StringTable* new_strings_;  // null: everything is known
  StackTable* new_stacks_;
  absl::Status status_;
  CounterRandom random_;

  uint32_t at_ = 0;     // of the operation
  uint32_t place_ = 0;  // that errors name
  bool ended_ = false;
  uint64_t steps_ = 0;
  uint64_t max_steps_;
  uint64_t events_ = 0;
  std::vector<Event> queue_;  // handed out next
  size_t queue_at_ = 0;

  std::vector<int64_t> variables_;  // of all calls; those of the current from base_ on
  size_t base_ = 0;
  std::vector<Frame> frames_;

  absl::flat_hash_map<Key, Live> live_;
  absl::flat_hash_map<Key, Live> outside_;
  absl::flat_hash_map<Key, uint64_t> cuda_events_;
  uint64_t last_handle_ = 0;
  AllocationId next_id_ = 0;

  std::vector<uint32_t> phases_ = {kNoText};  // paths, outermost first
  bool phase_changed_ = false;                // since the last event

  // Constant texts and labels are looked up once.
  std::vector<uint32_t> text_numbers_;
  std::vector<uint32_t> stack_numbers_;
  std::string scratch_;
  static constexpr uint64_t kTextMemory = 80;  // of a text, in addition to its letters
  uint64_t text_memory_ = 0;

  std::optional<RandomLoad> load_;  // that is running
};

}  // namespace memreplay::program

#endif  // MEMREPLAY_TRACE_PROGRAM_PROGRAM_EXPANDER_H_
