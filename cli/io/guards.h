// Protects a run and its machine from closed descriptors, unbounded memory and files that change
// while they are read. main() calls these functions before anything else.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace memreplay {

// Opens whichever of the standard descriptors are closed on /dev/null, unreadable or unwritable, so
// that a file that is opened later does not become standard output.
void HoldStandardDescriptors();

// Makes a mapped file that becomes shorter while it is read end the process with one line that
// names the file and exit status 2 instead of SIGBUS. Costs nothing otherwise.
void ReportShrunkFiles();

// Makes a write that exceeds the limit on a file's size (ulimit -f), or that goes to a pipe which
// nobody reads any more, an error instead of SIGXFSZ and SIGPIPE. Programs started from here have
// the signals as before.
void LetWritesFail();

// Makes this process end by SIGTERM when the process ends that MEMREPLAY_PARENT names by its
// number, if that started this one (python/memreplay), and takes the variable out of the
// environment.
void EndWithParent();

// Returns three quarters of the memory of the machine, or of the control group if that has less; 0
// if neither is known.
uint64_t DefaultMemoryLimit();

// Ends the process with one line and exit status 2 when it needs more memory than `bytes`, not
// counting mapped files, or, where `bytes` is 0, more than there is. The last call counts.
// Errors: InvalidArgument, below 64 MiB.
absl::Status LimitMemory(uint64_t bytes);

}  // namespace memreplay
