// Memory of the card, as cudaMalloc allocates it.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Allocates memory of the current card by the function `what` for `caller`, the code to be named if
// it is not PyTorch's allocator. Returns a CudaError.
int Allocate(const char* what, const void* caller, void** out, size_t bytes);

}  // namespace memreplay::card
