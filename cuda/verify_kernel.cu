// The two kernels of BlockVerifier (verify.h). Their names are in verify_pattern.h.
#include "cuda/verify_pattern.h"

namespace {

__device__ uint64_t Thread() {
  return blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
}
__device__ uint64_t Threads() { return gridDim.x * static_cast<uint64_t>(blockDim.x); }

}  // namespace

extern "C" __global__ void memreplay_fill(uint64_t address, uint64_t size, uint64_t seed) {
  memreplay::FillShare(address, size, seed, Thread(), Threads());
}

// *first_bad, kNothingBad before, becomes the lowest bad offset of all threads.
extern "C" __global__ void memreplay_check(uint64_t address, uint64_t size, uint64_t seed,
                                           unsigned long long* first_bad) {
  const uint64_t bad = memreplay::CheckShare(address, size, seed, Thread(), Threads());
  if (bad != memreplay::kNothingBad) atomicMin(first_bad, static_cast<unsigned long long>(bad));
}
