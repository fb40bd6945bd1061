// Decides where the host's memory lies. PyTorch clears autocast's cache in an order hashed from
// addresses of the host, so these decide in which order a script frees memory of the card.
#pragma once

namespace memreplay::card {

// Makes the heap, which grew by what the environment, the arguments, paths and imports needed,
// continue at an address that does not depend on them. Free chunks below that address are never
// released (a few MB, untouched). Does nothing if malloc is not glibc's over a heap.
void BeginHeapAnew();

}  // namespace memreplay::card
