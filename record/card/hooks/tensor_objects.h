// Decides where PyTorch's tensors lie on the host. Autocast's cache is a table hashed by the
// addresses of their objects, so these decide in which order its casts of weights are freed.
#pragma once

#include <cstddef>

namespace memreplay::card {
// Sets memory for tensors' objects aside at the end of the heap: their addresses then depend on the
// order in which they are made, and not on holes that the environment left in the heap. The memory
// is malloc's, so that free() of it does no harm.
void SetTensorObjectsAside();

// Returns memory for an object of that size, or null if none is set aside for it. Thread-safe, also
// in a forked child, which gets null rather than waiting for a thread that it does not have.
void* TakeTensorObject(size_t size);
// Returns an object to the memory set aside; false if `memory` is not part of it.
bool GiveTensorObjectBack(void* memory);

// Decides where the host's memory lies. PyTorch clears autocast's cache in an order hashed from
// addresses of the host, so these decide in which order a script frees memory of the card.

// Makes the heap, which grew by what the environment, the arguments, paths and imports needed,
// continue at an address that does not depend on them. Free chunks below that address are never
// released (a few MB, untouched). Does nothing if malloc is not glibc's over a heap.
void BeginHeapAnew();

}  // namespace memreplay::card
