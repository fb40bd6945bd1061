// Memory of the host that is zero without being written.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Fills `size` bytes at `to` with zeros. Where that is a large piece of private anonymous memory,
// its pages are released to the system, which reads them as zero and has nothing to keep: a program
// that offloads its activations does not take their size of this machine. Other memory is written.
void ZeroHostMemory(void* to, std::size_t size);

}  // namespace memreplay::card
