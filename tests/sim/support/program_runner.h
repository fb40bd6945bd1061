// Runs a schedule and checks after every step what must hold whatever the schedule does; cuts a
// failing schedule down.
#pragma once

#include <functional>
#include <string>

#include "sim/model/rule.h"
#include "sim/settings/torch_profile.h"
#include "tests/sim/support/program_generator.h"

namespace memreplay {

struct ProgramOutcome {
  std::string failure;  // "" if everything held
  RuleCounts rules = {};
  uint64_t events = 0;
  uint64_t ooms = 0;
};

// Replays on CachingAllocator and SimulatedDevice. Checks after every request: CheckInvariants(),
// OverlapChecker, the identities between segments and statistics, usage and free blocks counted
// from events, and the device's free memory. At the end, once everything is freed and flushed,
// nothing may be left.
ProgramOutcome RunProgram(const Program& program, const TorchProfile& profile);

// Does the same with a schedule that no caller would write, such as one that releases a pool twice:
// requests may end in an assertion of PyTorch's own, and then something may be left at the end.
ProgramOutcome RunAnyProgram(const Program& program, const TorchProfile& profile);

// Does the same in a process of its own, so that a stopped process is a failure too.
ProgramOutcome RunProgramIsolated(const Program& program, const TorchProfile& profile);

// Returns the shortest schedule found, by leaving out steps and then making sizes simpler, for
// which `fails` still holds. `program` must fail.
Program ShrinkProgram(Program program, const std::function<bool(const Program&)>& fails);

// Returns the schedule as flat JSON lines, ready for `memreplay replay`.
std::string ProgramText(const Program& program);

}  // namespace memreplay
