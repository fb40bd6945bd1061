// Sees each request of PyTorch's allocator of pinned memory, and each free.
#pragma once

#include "record/card/model/pinned.h"

namespace memreplay::card {

// Follows PyTorch's allocator from here on; `line` returns the number of the line of the script
// that requests memory. Returns false if this build of PyTorch has none that can be followed.
bool FollowPinned(int (*line)(), const HostAllocatorModel::Limits& limits);
// Calls `line` no more; what follows has number 0.
void ForgetLines();

// Returns whether this thread is within PyTorch's allocator of pinned memory.
bool InPinnedAllocator();
// Returns the number of the free that this thread is in (Pinned::Freeing()), or 0.
uint64_t PinnedFree();

}  // namespace memreplay::card
