// Stacks of a trace as a report shows them.
#ifndef MEMREPLAY_REPORT_WORDS_STACK_TEXT_H_
#define MEMREPLAY_REPORT_WORDS_STACK_TEXT_H_

#include <cstdint>
#include <string>

#include "proto/report.pb.h"
#include "trace/value/trace.h"

namespace memreplay {

inline constexpr int kMaxFrames = 12;

// The summary names the innermost frame of the program's own: Python outside
// of PyTorch, else any Python, else any. A tag of a program is its summary.
proto::Stack StackOf(const Trace& trace, uint32_t stack);

// The tag that a program gave to an allocation; "" for stacks of recordings.
std::string TagOf(const Trace& trace, uint32_t stack);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_STACK_TEXT_H_
