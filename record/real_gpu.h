// Whether there is a GPU in this machine.
#ifndef MEMREPLAY_RECORD_REAL_GPU_H_
#define MEMREPLAY_RECORD_REAL_GPU_H_

namespace memreplay {

// Asks NVIDIA's driver, which must then count at least one.
bool HasRealGpu();

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_REAL_GPU_H_
