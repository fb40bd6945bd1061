// Finds out whether this machine has a GPU.
#pragma once

namespace memreplay {

// Returns whether NVIDIA's driver counts at least one GPU.
bool HasRealGpu();

}  // namespace memreplay
