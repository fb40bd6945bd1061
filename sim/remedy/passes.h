// What a schedule reveals about its script: passes, and the modules that are called several times
// in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/category/meanings.h"
#include "sim/category/stack_roles.h"
#include "sim/remedy/schedule_edit.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// A forward pass: a range of requests in one phase, and the backward pass that follows it.
// Positions are indexes of Schedule::requests().
struct Pass {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t backward = kNoRequest;  // where it begins; kNoRequest if this pass has none
  uint32_t backward_end = kNoRequest;
  // Whether no backward pass belongs to it, although the recording goes on.
  bool is_over_without_backward = false;
  bool keeps_in_vain = false;  // what a backward pass would need
};

// A call of a module's forward().
struct ModuleCall {
  uint32_t begin = 0;  // requests [begin, end)
  uint32_t end = 0;
  uint32_t pass = 0;  // index into PassFacts::passes
  // Allocations made during the call and live until backward, other than what the call returns.
  std::vector<AllocationId> saved;
  // Allocations that the call returns, as far as they are live until backward.
  std::vector<AllocationId> returned;
};

// A module that is called several times in a forward pass, or several modules of one class.
struct RepeatedModule {
  // From Python's notes: their paths with * for numbers, "transformer.h.*". From stacks: "".
  std::string path;
  uint32_t forward = kNoRequest;  // from stacks: the frame of forward(), and
  uint32_t caller = kNoRequest;   // the frame that calls the module
  std::vector<ModuleCall> calls;  // ascending
  Bytes saved;                    // the maximum sum of `saved` in one pass
};

// What the passes of a training recording reveal: where each begins, and which modules repeat.
struct PassFacts {
  // Both are not owned. The events of the schedule are kept.
  const Schedule* schedule = nullptr;
  const Meanings* meanings = nullptr;
  std::vector<StackRole> roles;         // by stack
  std::vector<AllocationSpan> spans;    // by id
  std::vector<AllocationId> made;       // by request: what it makes, or kNoAllocation
  std::vector<uint32_t> event;          // by request: EventOfRequest()
  std::vector<Pass> passes;             // ascending
  std::vector<RepeatedModule> modules;  // those that save the most first
  // Where memory ran out for the last time in the recording. What comes after is not what the
  // script would have done.
  std::optional<uint32_t> refused;

  uint32_t RequestAt(uint64_t at_event) const;  // the first at or after it
  // Returns what is made in [begin, end) of a pass, is live until its backward pass, or would be,
  // and may be what autograd saves.
  std::vector<AllocationId> SavedIn(uint32_t begin, uint32_t end, const Pass& pass) const;
};

// Finds the facts; nullopt for a schedule that is expanded again. `meanings` are those of
// `schedule`; both must outlive the result. O(requests + frames of stacks * their depth).
std::optional<PassFacts> FindPassFacts(const Schedule& schedule, const Meanings& meanings);

}  // namespace memreplay
