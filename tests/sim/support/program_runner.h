// Runs a program and checks after every step what must hold whatever the
// program does; cuts a failing program down.
#ifndef MEMREPLAY_TESTS_SIM_SUPPORT_PROGRAM_RUNNER_H_
#define MEMREPLAY_TESTS_SIM_SUPPORT_PROGRAM_RUNNER_H_

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

// Replays on CachingAllocator and SimulatedDevice. After every request:
// CheckInvariants(), OverlapChecker, the identities between segments and
// statistics, usage and free blocks counted from events, the device's free
// memory. At the end, once everything is freed and flushed: nothing is left.
ProgramOutcome RunProgram(const Program& program, const TorchProfile& profile);

// The same of a program that no caller would write, such as one that gives a pool back twice:
// requests may end in an assertion of PyTorch's own, and then something may be left at the end.
ProgramOutcome RunAnyProgram(const Program& program, const TorchProfile& profile);

// The same in a process of its own, so that a stopped process is a failure too.
ProgramOutcome RunProgramIsolated(const Program& program, const TorchProfile& profile);

// The shortest program found, by leaving out steps and then making sizes
// simpler, for which `fails` still holds. `program` must fail.
Program ShrinkProgram(Program program, const std::function<bool(const Program&)>& fails);

// The program as flat JSON lines, ready for `memreplay replay`.
std::string ProgramText(const Program& program);

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_SIM_SUPPORT_PROGRAM_RUNNER_H_
