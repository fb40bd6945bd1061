// Traces as text, with every index resolved, so that two of them can be
// compared whatever the order of their tables; and random traces.
#pragma once

#include <cstdint>
#include <string>

#include "trace/value/trace.h"

namespace memreplay::testing {

// Returns all that a Trace says, except its `format`.
std::string DumpTrace(const Trace& trace);

// Returns a well formed trace that says something in every field, most of it nonsense, and the same
// for the same seed.
Trace RandomTrace(uint64_t seed);

// Returns a recorded trace as a snapshot of PyTorch 2.11 can hold it: two devices, pools, stacks,
// an out-of-memory event, annotations, settings.
Trace SnapshotTrace();

// Returns the file's bytes under MEMREPLAY_SHARED (or ../shared); empty if it is not there.
std::string ReadShared(const std::string& path);

}  // namespace memreplay::testing
