// Finds out whether this machine has a GPU.
#ifndef MEMREPLAY_RECORD_REAL_GPU_H_
#define MEMREPLAY_RECORD_REAL_GPU_H_

namespace memreplay {

// Returns whether NVIDIA's driver counts at least one GPU.
bool HasRealGpu();

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_REAL_GPU_H_
