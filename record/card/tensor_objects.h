// Where PyTorch's tensors lie on the host. Autocast's cache is a table hashed by the addresses of
// their objects, so these decide in which order its casts of weights are given back.
#pragma once

#include <cstddef>

namespace memreplay::card {

// Sets memory for tensors' objects aside, at the end of the heap: their addresses then depend on
// the order in which they are made, and not on holes that the environment left in the heap.
// It is memory of malloc: who gives it back by free() does no harm.
void SetTensorObjectsAside();

// Memory for an object of that size; null where there is none aside for it. Any thread may ask, and
// a forked child: it gets null rather than waiting for a thread that it does not have.
void* TakeTensorObject(std::size_t size);
// Takes back what was set aside; false if `memory` was not.
bool GiveTensorObjectBack(void* memory);

}  // namespace memreplay::card
