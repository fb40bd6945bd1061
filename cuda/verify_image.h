// The kernels of verify_kernel.cu, compiled: a compressed fat binary.
#ifndef MEMREPLAY_CUDA_VERIFY_IMAGE_H_
#define MEMREPLAY_CUDA_VERIFY_IMAGE_H_

extern "C" const unsigned long long memreplay_verify_image[];

#endif  // MEMREPLAY_CUDA_VERIFY_IMAGE_H_
