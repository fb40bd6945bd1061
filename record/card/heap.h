// Where the host's memory lies. PyTorch clears autocast's cache in an order hashed from addresses
// of the host, so these decide in which order a program gives memory of the card back.
#pragma once

namespace memreplay::card {

// Until now the heap grew by what the environment, the arguments, paths and imports needed; from
// here on it goes on at an address that does not depend on them. Free chunks below are taken for
// good (a few MB, never touched). Does nothing where malloc is not glibc's over a heap.
void BeginHeapAnew();

}  // namespace memreplay::card
