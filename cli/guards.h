// What keeps a hostile or unlucky run from harm to itself and to the machine:
// descriptors, memory, files that change under it. For main() alone, once, before
// anything else.
#ifndef MEMREPLAY_CLI_GUARDS_H_
#define MEMREPLAY_CLI_GUARDS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace memreplay {

// A file that is opened must not become standard output because that was closed:
// what is missing is held by something that refuses to be read or written.
void HoldStandardDescriptors();

// A mapped file that becomes shorter while it is read ends the program with one
// line that names it, and exit status 2, instead of SIGBUS. Costs nothing while
// files stay as they are.
void TellOfShrunkFiles();

// Three quarters of the memory of the machine, or of the control group if that
// has less; 0 if nobody says.
uint64_t DefaultMemoryLimit();

// Memory beyond `bytes` is refused (mapped files do not count), and the program ends
// with one line and exit status 2 when any is refused. 0: no limit, the same end.
// Errors: InvalidArgument, below 64 MiB.
absl::Status LimitMemory(uint64_t bytes);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_GUARDS_H_
