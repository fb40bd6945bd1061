// Reports what was live at a moment, by the stack that requested it.
#pragma once

#include <cstddef>
#include <string>

#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"

namespace memreplay {

// Selects the stacks to list.
struct HeldOptions {
  size_t top = 10;     // stacks listed
  std::string filter;  // only stacks with this text in a frame; "" for all
};

// Returns what is in the file's state at the end, by the stacks of its blocks. O(blocks).
proto::Held HeldAtEnd(const Trace& trace, size_t device_index, StackNames& names,
                      const HeldOptions& options);

// Returns what was live when the most was requested at once. Simulates nothing. O(requests).
proto::Held HeldAtPeak(const Schedule& schedule, StackNames& names, const HeldOptions& options);

}  // namespace memreplay
