// The images of kernels that nvcc puts into a library.
#pragma once

namespace memreplay::card {

// Returns the architecture (89 for sm_89) of the image that a card of this capability would run:
// the highest machine code of its major version that is not above it, else the highest PTX that is
// not above it. Returns 0 if it can run none. `wrapper` is what nvcc's code passes to
// __cudaRegisterFatBinary.
int ArchitectureFor(const void* wrapper, int capability);

}  // namespace memreplay::card
