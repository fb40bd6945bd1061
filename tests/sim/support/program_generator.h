// Random schedules: lists of requests that are meant to bring an allocator into every state, the
// same list for the same seed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "trace/value/event.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// One record of a schedule. Fields are as in Event; `handle` names an allocation.
struct Step {
  EventKind kind = EventKind::kAlloc;
  uint64_t handle = 0;
  uint64_t size = 0;
  uint32_t stream = 0;
  uint16_t pool = 0;
  std::string text;
};

// A schedule as a value that can be cut: any subset of its steps is a schedule again (frees and
// uses of handles that are not live are dropped).
struct Program {
  std::string conf;
  Bytes total;
  std::optional<double> fraction;
  bool explicit_completion = false;
  std::vector<Step> steps;
};

inline constexpr uint32_t kProgramStreams = 5;  // handles 0 to 4
inline constexpr std::array<PoolId, 5> kProgramPools = {PoolId{}, PoolId{0, 1}, PoolId{0, 2},
                                                        PoolId{1, 0}, PoolId{2, 0}};

// Returns what a reader of the flat schedule format makes of it.
Trace ToTrace(const Program& program);

enum class Mix : uint8_t {
  kThresholds,  // sizes around each limit, by one byte and by 512
  kLogUniform,  // all sizes alike
  kTraining,    // layers forward and backward, varying length
  kStreams,     // several streams, uses that complete late
  kPressure,    // small device: retries, out of memory
  kLimits,      // memory fraction, garbage collection, oversize blocks
  kExpandable,  // expandable segments under pressure, on and off
  kPools,       // private pools, nested, ended and released
  kFailures,    // the driver refuses the next few allocations
  kSettings,    // settings changed at run time
  kCount,
};
std::string_view MixName(Mix mix);
inline void PrintTo(Mix mix, std::ostream* out) { *out << MixName(mix); }  // for GoogleTest

// O(steps). No state is reached that PyTorch itself leaves undefined.
Program GenerateProgram(Mix mix, uint64_t seed, int steps);

}  // namespace memreplay
