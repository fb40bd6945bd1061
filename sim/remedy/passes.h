// What a schedule says of its script: passes, and the modules that are called several times in one.
#ifndef MEMREPLAY_SIM_REMEDY_PASSES_H_
#define MEMREPLAY_SIM_REMEDY_PASSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/category/meanings.h"
#include "sim/category/stack_roles.h"
#include "sim/remedy/schedule_edit.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A forward pass: a stretch of requests in one phase, and the backward pass that follows it.
// Positions are indexes of Schedule::requests().
struct Pass {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t backward = kNoRequest;  // where it begins; none: the schedule has none for this pass
  uint32_t backward_end = kNoRequest;
  // Another pass follows and there was no backward pass between.
  bool is_over_without_backward = false;
};

// A call of a module's forward().
struct ModuleCall {
  uint32_t begin = 0;  // requests [begin, end)
  uint32_t end = 0;
  uint32_t pass = 0;  // index into PassFacts::passes
  // What was made during the call and is live until backward, other than what the call returns.
  std::vector<AllocationId> saved;
  // What the call returns, as far as it is live until backward.
  std::vector<AllocationId> returned;
};

// A module that is called several times in a forward pass, or several modules of one class.
struct RepeatedModule {
  // By Python's notes: their paths with * for numbers, "transformer.h.*". By stacks: "".
  std::string path;
  uint32_t forward = kNoRequest;  // by stacks: the frame of forward(), and
  uint32_t caller = kNoRequest;   // the frame that calls the module
  std::vector<ModuleCall> calls;  // ascending
  Bytes saved;                    // the most that `saved` of one pass comes to
};

// What the passes of a training recording say: where each begins, and which modules repeat.
struct PassFacts {
  // Not owned. The events of the schedule are kept.
  const Schedule* schedule = nullptr;
  const Meanings* meanings = nullptr;
  std::vector<StackRole> roles;         // by stack
  std::vector<AllocationSpan> spans;    // by id
  std::vector<AllocationId> made;       // by request: what it makes; kNoAllocation: nothing
  std::vector<uint32_t> event;          // by request: EventOfRequest()
  std::vector<Pass> passes;             // ascending
  std::vector<RepeatedModule> modules;  // that save the most first
  // Where memory ran out when it was recorded, the last time: what comes after is not what the
  // script would have done.
  std::optional<uint32_t> refused;

  uint32_t RequestAt(uint64_t at_event) const;  // the first at or after it
};

// Absent for a schedule that is expanded again. `meanings` are those of `schedule`; both must
// outlive the answer. O(requests + frames of stacks * their depth).
std::optional<PassFacts> FindPassFacts(const Schedule& schedule, const Meanings& meanings);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_REMEDY_PASSES_H_
