// Zeroes memory of the host without writing it.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Fills `size` bytes at `to` with zeros. The pages of a large piece of private anonymous memory are
// released to the system, for which they read as zero and take nothing: a script that offloads its
// activations does not need their size on this machine. Other memory is written.
void ZeroHostMemory(void* to, size_t size);

}  // namespace memreplay::card
