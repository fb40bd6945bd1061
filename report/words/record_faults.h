// Finds what makes the answer of `memreplay record` bad.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/record.pb.h"

namespace memreplay {

// By these, `explain` knows an answer of `record` in a log: what it assumes of the memory outside
// PyTorch, and how it goes on when memory ran out.
inline constexpr char kAssumedOutside[] = " is assumed to be taken by the CUDA context and others";
inline constexpr char kNextSteps[] = "   reports what held the memory and what would help;\n";

// Returns "train.py:33 in forward" of a place with its folders and a function; "" if there is none.
std::string LineOf(std::string_view place, std::string_view function);

// Returns "ValueError: too large (train.py:33 in forward)" of an exception's class, its message,
// which may be empty and of which the first line is taken, and the line that raised it, or "".
std::string ErrorOf(std::string_view error, std::string_view text, std::string_view line);
std::string ErrorOf(const proto::RecordedProcess& process);
std::string ErrorOf(const proto::ScriptRow& row);

// How a run of a script ended.
enum class RunEnd {
  kWhole,  // by itself, and memory did not run out: the only end of which one may say that it fits
  kStopped,  // where it was told to: --steps, --until, a signal
  kFailed,   // by an error that is not about memory of the GPU
  kRefused,  // by one that is, although no request of PyTorch's was refused
  kRanOut,   // however it ended: memory ran out
};

// Return how a run ended, and how it did for one of its processes.
RunEnd EndOf(const proto::RecordReport& report);
RunEnd EndOf(const proto::RecordReport& report, const proto::RecordedProcess& process);

// Returns that a run ended before the backward pass that has `late_state` bytes of an optimizer's
// state on top of its peak (proto/record.proto); "" if they are too few to be worth saying.
std::string LateStateText(int64_t late_state);

// Sets `ended` of the report's processes.
void AddEnds(proto::RecordReport* report);

// Adds to `faults` what the rest of the report shows: a script that failed, memory that ran out, a
// replay that differs. Sets `is_lower_bound`.
void FindRecordFaults(proto::RecordReport* report);

}  // namespace memreplay
